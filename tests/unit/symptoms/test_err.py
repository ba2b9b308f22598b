"""An error that everybody knows is answered with what mends it here, by the settings of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written

if TYPE_CHECKING:
    from pathlib import Path

STEPS = "".join(
    f"{{'loss': {2.5 - 0.01 * n:.4f}, 'grad_norm': 0.51, 'learning_rate': 0.0002, 'epoch': {n / 100}}}\n"
    for n in range(1, 31)
)
TRACEBACK = 'Traceback (most recent call last):\n  File "/app/train.py", line 210, in <module>\n    trainer.train()\n'
YAML = "base_model: meta-llama/Llama-3-8B\nmicro_batch_size: 4\n"
COUNT = (
    "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: A different number of tensors was saved during the"
    " original forward and recomputation.\n"
)
METADATA = (
    "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: Recomputed values for the following tensors have"
    " different metadata than during the forward pass.\n"
)
OFF = "gradient_checkpointing_kwargs:\n  use_reentrant: false\n"


def raised(line: str, config: str = "", log: str = STEPS) -> dict[str, str]:
    return {"train.log": log + TRACEBACK + line, "config.yaml": YAML + config}


def died(code: int, signal: str, config: str = "", log: str = STEPS) -> dict[str, str]:
    return {
        "train.log": f"{log}E1120 08:10:00.123000 881 torch/distributed/elastic/multiprocessing/api.py:882] failed "
        f"(exitcode: -{code}) local_rank: 1 (pid: 4182) of binary: /usr/bin/python\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============\ntrain.py FAILED\n"
        "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n"
        f"  exitcode  : -{code} (pid: 4182)\n  traceback : Signal {code} ({signal}) received by PID 4182\n",
        "config.yaml": YAML + config,
    }


@pytest.mark.parametrize("error", [COUNT, METADATA])
@pytest.mark.parametrize("config", ["deepspeed: deepspeed_configs/zero3_bf16.json\n", "flex_attention: true\n"])
def test_recomputation_under_zero3_or_flex_attention_needs_the_reentrant_form(
    tmp_path: Path, error: str, config: str
) -> None:
    page = told(written(tmp_path, raised(error, config + OFF)))
    assert "fix Set use_reentrant: true: " in page
    assert "(now gradient_checkpointing_kwargs.use_reentrant = false, config.yaml:5)" in page


@pytest.mark.parametrize(
    "config", [OFF, "deepspeed: ds/zero2.json\n" + OFF, "deepspeed: ds/zero3.json\n" + OFF.replace("false", "true")]
)
def test_recomputation_that_differs_elsewhere_is_not_blamed_on_the_form(tmp_path: Path, config: str) -> None:
    page = told(written(tmp_path, raised(COUNT, config)))
    assert "fix Make both passes of the checkpointed function alike" in page
    # where nothing says whether ZeRO-3 is on, the other form is a second thing to try
    assert ("Under ZeRO-3 or flex attention set use_reentrant: true" in page) is (config == OFF)
    assert ("reentrant" in page) is (config == OFF)


def test_a_killed_process_is_answered_with_each_setting_that_costs_host_memory(tmp_path: Path) -> None:
    config = "dataset_num_proc: 64\ndataloader_num_workers: 16\n"
    page = told(written(tmp_path, died(9, "SIGKILL", config)))
    assert "train on less data or stream it, and run fewer loader workers (now dataloader_num_workers = 16" in page
    assert "lower dataset_num_proc: each process that prepares data holds a copy of its own (now" in page


def test_one_process_that_prepares_data_is_not_blamed_for_the_kill(tmp_path: Path) -> None:
    assert "dataset_num_proc" not in told(written(tmp_path, died(9, "SIGKILL", "dataset_num_proc: 1\n")))


def test_a_bus_error_under_deepspeed_may_come_of_its_version(tmp_path: Path) -> None:
    page = told(written(tmp_path, died(7, "SIGBUS", "deepspeed: deepspeed_configs/zero2.json\n")))
    assert "docker run --shm-size=16g" in page
    assert "pip install -U deepspeed" in page


@pytest.mark.parametrize(
    ("error", "cause", "advice"),
    [
        ("ValueError: only one element tensors can be converted to Python scalars", "uncaught_exception", ".mean()"),
        ("RuntimeError: a Tensor with 8 elements cannot be converted to Scalar", "uncaught_exception", "drop_last"),
        (
            (
                "RuntimeError: While copying the parameter named embed.weight, whose dimensions in the model are"
                " torch.Size([90, 8]) and whose dimensions in the checkpoint are torch.Size([91, 8])."
            ),
            "state_mismatch",
            "the message names the parameter that differs",
        ),
        ("ValueError: inconsistent batch of 3 and 4", "shape_mismatch", "Compare the shapes"),
    ],
)
def test_sizes_are_of_a_value_of_a_checkpoint_or_of_a_batch(
    tmp_path: Path, error: str, cause: str, advice: str
) -> None:
    log = f'Traceback (most recent call last):\n  File "/app/train.py", line 3, in <module>\n    step()\n{error}\n'
    verdict = report(written(tmp_path, {"run.log": log})).verdict
    assert verdict.cause == cause
    assert advice in verdict.actions[0].text


@pytest.mark.parametrize(("device", "cause"), [("CPU", "host_out_of_memory"), ("GPU", "gpu_out_of_memory")])
@pytest.mark.parametrize("alone", [True, False])
def test_tensorflow_says_whose_memory_was_full(tmp_path: Path, device: str, cause: str, *, alone: bool) -> None:
    place = f"/job:localhost/replica:0/task:0/device:{device}:0 by allocator {device.lower()}"
    error = f"ResourceExhaustedError: OOM when allocating tensor with shape[64,8] and type float on {place}\n"
    trace = (
        "" if alone else 'Traceback (most recent call last):\n  File "/app/train.py", line 3, in <module>\n    run()\n'
    )
    assert report(written(tmp_path, {"run.log": trace + error})).verdict.cause == cause


def test_a_local_object_for_a_worker_is_not_pickled(tmp_path: Path) -> None:
    error = "AttributeError: Can't get local object 'train.<locals>.collate'\n"
    trace = 'Traceback (most recent call last):\n  File "/app/train.py", line 3, in <module>\n    run()\n'
    page = told(written(tmp_path, {"run.log": trace + error}))
    assert "(cannot_pickle, confidence" in page
    assert "load without workers (num_workers=0)" in page


@pytest.mark.parametrize(("code", "is_told"), [(7, True), (11, False)])
def test_the_launcher_of_deepspeed_is_known_by_its_line(tmp_path: Path, code: int, *, is_told: bool) -> None:
    end = f"[2031-05-06 07:08:09,777] [ERROR] [launch.py:325:sigkill_handler] exits with return code = -{code}\n"
    assert ("pip install -U deepspeed" in told(written(tmp_path, {"run.out": "step 1 loss 2.1\n" + end}))) is is_told


def test_a_bus_error_without_deepspeed_is_not_blamed_on_it(tmp_path: Path) -> None:
    page = told(written(tmp_path, died(7, "SIGBUS")))
    assert "docker run --shm-size=16g" in page
    assert "pip install" not in page


def test_an_aborted_communicator_is_asked_for_its_first_warning(tmp_path: Path) -> None:
    page = told(written(tmp_path, raised("RuntimeError: NCCL communicator was aborted on rank 3.\n")))
    assert "export NCCL_DEBUG=INFO" in page


def test_a_lost_gloo_peer_is_not_asked_for_lines_of_nccl(tmp_path: Path) -> None:
    line = "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:5012\n"
    page = told(written(tmp_path, raised(line)))
    assert "peer_gone, confidence" in page
    assert "NCCL" not in page


def test_a_flattened_weight_is_one_of_the_first_fsdp(tmp_path: Path) -> None:
    page = told(written(tmp_path, raised("RuntimeError: 'weight' must be 2-D\n", "fsdp_config:\n  fsdp_version: 1\n")))
    assert "fix Under FSDP set fsdp_version to 2, or do not call unwrap_model on the sharded model" in page
    assert "(now fsdp_config.fsdp_version = 1, config.yaml:4)" in page


def test_a_weight_of_the_second_fsdp_is_gathered(tmp_path: Path) -> None:
    page = told(written(tmp_path, raised("RuntimeError: 'weight' must be 2-D\n", "fsdp_config:\n  fsdp_version: 2\n")))
    assert "fix Gather it, or change what is wrapped." in page
    assert "unwrap_model" not in page


def test_a_failure_of_the_hubs_storage_service_is_avoided_by_a_switch(tmp_path: Path) -> None:
    line = "RuntimeError: Data processing error: CAS service error : ReqwestMiddleware Error: Request failed\n"
    page = told(written(tmp_path, raised(line, log="")))
    assert "export HF_HUB_DISABLE_XET=1" in page


def test_another_failed_download_is_not_answered_with_that_switch(tmp_path: Path) -> None:
    line = "huggingface_hub.errors.LocalEntryNotFoundError: the file is not in the cache and the Hub gave no answer\n"
    assert "HF_HUB_DISABLE_XET" not in told(written(tmp_path, raised(line, log="")))


def test_a_missing_pad_token_is_answered_with_the_key_that_sets_it(tmp_path: Path) -> None:
    line = "ValueError: Asking to pad but the tokenizer does not have a padding token. Please select one\n"
    page = told(written(tmp_path, raised(line, log="")))
    assert 'special_tokens: {pad_token: "<|endoftext|>"}' in page


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (
            "FloatingPointError: Fatal error: gradients are inconsistent between workers.",
            "choose another data-parallel backend",
        ),
        ("KeyError: Parameter containing:", "Make the optimizer when the model is on its device"),
        ("RuntimeError: (Unavailable) Memory map failed when create shared memory.", "docker run --shm-size=16g"),
        (
            "OSError: (External) Rccl error, unhandled system error (at nccl_helper.h:77)",
            "export NCCL_SOCKET_IFNAME=eth0",
        ),
        (
            "subprocess.CalledProcessError: Command '['python.exe']' returned non-zero exit status 3221225477.",
            "The run died of an access violation (0xC0000005)",
        ),
        ("AttributeError: 'Trainer' object has no attribute 'interval'", "of a class of the program itself"),
        ("Exception: process 3 terminated with signal SIGSEGV", "died of a segmentation fault"),
        ("ValueError: Reward should be finite scalar, got nan", "Print the action that the environment got"),
        (
            "RuntimeError: Type resolution failed for <class 'mill.args.Args'>. Try another scope",
            "transformers that mill",
        ),
    ],
)
def test_an_exception_that_a_library_words_in_its_own_way_has_the_advice_of_its_cause(
    tmp_path: Path, line: str, advice: str
) -> None:
    assert advice in told(written(tmp_path, raised(line + "\n")))


def test_gradients_that_are_not_finite_are_not_told_as_ranks_that_differ(tmp_path: Path) -> None:
    text = told(written(tmp_path, raised("FloatingPointError: gradients are Nan/Inf\n")))
    assert text.startswith("FAILED nan")


@pytest.mark.parametrize(("what", "step"), [("Scanning", None), ("Epoch", 40037)])
def test_a_bar_is_told_by_its_first_words_although_a_path_and_numbers_follow(
    tmp_path: Path, what: str, step: int | None
) -> None:
    bar = f"train: {what} '/mnt/disks/blue/birds/train/labels' images and labels... 40037 found, 0 missing, 0 empty, "
    log = f"{bar}0 corrupted: 100%|█████| 40037/40037 [00:08<00:00, 4997.64it/s]\n"
    run = written(tmp_path, {"train.log": log + TRACEBACK + "ValueError: bad mill\n"})
    assert report(run).verdict.onset.step == step


IN_WORKER = """\
Traceback (most recent call last):
  File "/app/train.py", line 61, in train
    for batch in loader:
  File "/opt/env/lib/python3.10/site-packages/torch/_utils.py", line 461, in reraise
    raise exception
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/opt/env/lib/python3.10/site-packages/torch/utils/data/_utils/worker.py", line 302, in _worker_loop
    data = fetcher.fetch(index)
  File "/app/data.py", line 12, in collate
    index = torch.tensor(index)
"""
IN_MAIN = 'Traceback (most recent call last):\n  File "/app/train.py", line 6, in main\n    model.cuda()\n'


@pytest.mark.parametrize(
    ("trace", "cause", "advice"),
    [
        (IN_WORKER, "cuda_in_forked_process", "Let data sets, samplers and collators hold CPU tensors"),
        (IN_MAIN, "device_unavailable", "Look at nvidia-smi"),
    ],
)
def test_a_device_that_does_not_start_in_a_worker_is_a_fork_and_no_broken_machine(
    tmp_path: Path, trace: str, cause: str, advice: str
) -> None:
    verdict = report(written(tmp_path, {"run.log": trace + "RuntimeError: CUDA error: initialization error\n"})).verdict
    assert verdict.cause == cause
    assert advice in verdict.actions[0].text


@pytest.mark.parametrize(
    ("asked", "cause"),
    [(10**13, "impossible_request"), (10**13 - 1, "host_out_of_memory")],
)
@pytest.mark.parametrize("native", [True, False])
def test_a_request_that_no_machine_could_serve_is_a_wrong_size_and_no_small_host(
    tmp_path: Path, asked: int, cause: str, *, native: bool
) -> None:
    words = (
        f"[enforce fail at CPUAllocator.cpp:65] . DefaultCPUAllocator: can't allocate memory: you tried to allocate "
        f"{asked} bytes. Error code 12 (Cannot allocate memory)\n"
    )
    head = (
        "terminate called after throwing an instance of 'c10::Error'\n  what():  "
        if native
        else TRACEBACK + "RuntimeError: "
    )
    verdict = report(written(tmp_path, {"train.log": STEPS + head + words})).verdict
    assert verdict.cause == cause
    assert ("ran out of host memory" in verdict.headline) is (cause == "host_out_of_memory")


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        ("ibv_create_qp failed", "adapter_refused"),
        ("ibv_reg_mr_iova2 failed with error Cannot allocate memory", "locked_memory_limit"),
        ("ibv_modify_qp failed with error Connection timed out", "network_or_system_error"),
    ],
)
def test_an_adapter_that_refuses_is_not_told_as_a_network_that_is_away(tmp_path: Path, call: str, cause: str) -> None:
    log = f"node8:77:91 [0] misc/ibvwrap.cc:280 NCCL WARN Call to {call}\nnode8:77:91 [0] NCCL INFO init.cc:840 -> 2\n"
    error = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:784, unhandled system error, NCCL version 2.7.8\n"
    assert report(written(tmp_path, {"rank0.log": log + TRACEBACK + error})).verdict.cause == cause


def test_a_traceback_inside_of_a_message_is_no_key_and_what_it_raised_is_one(tmp_path: Path) -> None:
    inner = "'Traceback (most recent call last):\\n  File \"data.py\", line 34, in get\\nKeyError: \\'mill\\'\\n'"
    page = told(written(tmp_path, raised(f"KeyError: {inner}\n")))
    assert "Print the keys that are there at data.py:34 in get: 'mill' is not among them" in page
    cut = told(written(tmp_path, raised(f"KeyError: {inner[:60]}\n")))
    assert "Print the keys" not in cut
    assert "Print the keys" in told(written(tmp_path, raised("KeyError: 'mill'\n")))


@pytest.mark.parametrize(("where", "first"), [("(nil)", "Unset HSA_OVERRIDE_GFX_VERSION"), ("0x7f00", "Run with AMD_")])
def test_a_fault_at_address_zero_is_first_asked_for_the_architecture(tmp_path: Path, where: str, first: str) -> None:
    line = f"Memory access fault by GPU node-2 (Agent handle: 0x55d1) on address {where}. Reason: Unknown.\n"
    verdict = report(written(tmp_path, {"train.log": STEPS + line + "Aborted (core dumped)\n"})).verdict
    assert verdict.cause == "illegal_memory_access"
    assert verdict.actions[0].text.startswith(first)


LOGGED = "2031-05-06 07:08:09 | ERROR | more shards are asked for than there are\n"
BEYOND = """Traceback (most recent call last):
  File "/opt/toy/train.py", line 40, in <module>
    names = shards[epoch]["names"]
"""


def test_of_an_exception_that_nobody_knows_the_programs_own_words_just_above_come_first(tmp_path: Path) -> None:
    found = report(written(tmp_path, {"train.log": f"{LOGGED}{BEYOND}IndexError: list index out of range\n"}))
    assert found.verdict.actions[0].text.endswith("just before: more shards are asked for than there are")
    assert (1, "more shards are asked for than there are") in {
        (e.locator.line, e.quote) for f in found.findings for e in f.evidence
    }


def test_an_error_that_is_known_needs_no_words_of_the_program(tmp_path: Path) -> None:
    known = f"{LOGGED}{BEYOND}OSError: [Errno 28] No space left on device\n"
    verdict = report(written(tmp_path, {"train.log": known})).verdict
    assert (verdict.cause, "just before" in verdict.actions[0].text) == ("disk_full", False)


EVICTED = "Status:  Failed\nReason:  Evicted\nMessage: {}\n"


@pytest.mark.parametrize(
    ("why", "cause", "decision"),
    [
        ("Pod ephemeral local storage usage exceeds the total limit of containers 5Gi.", "disk_full", "after_change"),
        ("The node was low on resource: ephemeral-storage.", "evicted", "as_is"),
        ("The node was low on resource: memory. Container mill used 9Gi.", "host_out_of_memory", "after_change"),
    ],
)
def test_why_a_pod_was_evicted_decides_whether_it_is_started_again_as_it_is(
    tmp_path: Path, why: str, cause: str, decision: str
) -> None:
    verdict = report(written(tmp_path, {"describe.txt": EVICTED.format(why), "train.log": STEPS})).verdict
    assert (verdict.cause, str(verdict.restart and verdict.restart.decision)) == (cause, decision)


@pytest.mark.parametrize(
    ("statement", "advice"),
    [
        ("counts[labels] += 1", "Compare the class numbers"),
        ("end = offsets[shard + 1]", "Count the shards, files or parts"),
    ],
)
def test_an_index_one_past_the_end_is_a_class_number_where_labels_index(
    tmp_path: Path, statement: str, advice: str
) -> None:
    frame = f'  File "/app/turn.py", line 3, in turn\n    {statement}\n'
    log = STEPS + TRACEBACK + frame + "IndexError: index 2 is out of bounds for axis 0 with size 2\n"
    assert report(written(tmp_path, {"train.log": log})).verdict.actions[0].text.startswith(advice)


def test_a_length_that_would_become_nan_is_no_loss_that_is(tmp_path: Path) -> None:
    short = "ValueError: normalize received a tensor of length 1. This will result in torch.std() returning nan.\n"
    verdict = report(written(tmp_path, raised(short))).verdict
    assert (str(verdict.shape), verdict.cause) == ("crash", "sample_too_short")
    lost = report(written(tmp_path / "b", raised("ValueError: the loss of length 17 is nan\n"))).verdict
    assert str(lost.shape) == "nan"


@pytest.mark.parametrize(
    ("line", "cause", "decision"),
    [
        ("botocore.exceptions.NoCredentialsError: Unable to locate credentials", "access_refused", "after_change"),
        (
            "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint",
            "web_request_failed",
            "as_is",
        ),
    ],
)
def test_a_server_that_refuses_the_credentials_refuses_them_again(
    tmp_path: Path, line: str, cause: str, decision: str
) -> None:
    verdict = report(written(tmp_path, raised(f"{line}\n"))).verdict
    assert (verdict.cause, str(verdict.restart and verdict.restart.decision)) == (cause, decision)


@pytest.mark.parametrize(
    ("statement", "advice"),
    [
        ("for token, count in table:", "Look for the entry without 2 parts"),
        ("obs, info = env.reset()", "Count what the"),
    ],
)
def test_what_does_not_unpack_in_a_loop_is_an_entry_of_the_data(tmp_path: Path, statement: str, advice: str) -> None:
    frame = f'  File "/app/turn.py", line 3, in turn\n    {statement}\n'
    log = STEPS + TRACEBACK + frame + "ValueError: not enough values to unpack (expected 2, got 1)\n"
    assert report(written(tmp_path, {"train.log": log})).verdict.actions[0].text.startswith(advice)


@pytest.mark.parametrize(
    ("raised_as", "asks"), [("windmill.framework.errors_impl.PlanError", False), ("ValueError", True)]
)
def test_a_package_raises_its_own_errors_on_purpose_however_deep(tmp_path: Path, raised_as: str, asks: bool) -> None:
    frames = "".join(
        f'  File "/opt/env/lib/python3.11/site-packages/windmill/{name}.py", line 3, in turn\n    turn()\n'
        for name in ("build", "plan", "kind", "level")
    )
    log = STEPS + TRACEBACK + frames + f"{raised_as}: a level of -1\n"
    commands = [one.command for one in report(written(tmp_path, {"train.log": log})).verdict.actions]
    assert ("pip show windmill" in commands) == asks


@pytest.mark.parametrize(
    ("said", "asks"), [("Maybe you forgot to set the wind?", False), ("the wind has a level", True)]
)
def test_a_message_that_says_what_to_do_asks_for_no_version(tmp_path: Path, said: str, asks: bool) -> None:
    frames = "".join(
        f'  File "/opt/env/lib/python3.11/site-packages/windmill/{name}.py", line 3, in turn\n    turn()\n'
        for name in ("build", "plan", "kind", "level")
    )
    verdict = report(written(tmp_path, {"train.log": STEPS + TRACEBACK + frames + f"ValueError: {said}\n"})).verdict
    assert ("pip show windmill" in [one.command for one in verdict.actions]) == asks


def test_a_native_check_names_what_it_refuses(tmp_path: Path) -> None:
    check = "[07:08:09] src/mill.h:14: Check failed: (rows) == (labels) label shape mismatch\n"
    died = "terminate called after throwing an instance of 'dmlc::Error'\nAborted (core dumped)\n"
    verdict = report(written(tmp_path, {"train.log": STEPS + check + died})).verdict
    assert verdict.actions[0].text.startswith("Find what was handed over")
    assert str(verdict.restart and verdict.restart.decision) == "after_change"
