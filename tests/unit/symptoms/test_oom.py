"""Memory that ran out, or will: the phase, what to change for that phase, and how to see what holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forensics.model import Outcome
from tests.unit.symptoms.kit import report, told, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forensics.model import Report

ERROR = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of"
    " which 1.12 GiB is free. Including non-PyTorch memory, this process has 78.02 GiB memory in use. Of the allocated"
    " memory 75.31 GiB is allocated by PyTorch, and 1.20 GiB is reserved by PyTorch but unallocated.\n"
)
YAML = "base_model: meta-llama/Llama-3-8B\nmicro_batch_size: 4\nsequence_len: 4096\n"
FORWARD = ("transformers/models/llama/modeling_llama.py", "forward")
#: Frames around the one that raised, by what the program was doing.
TRAINS, EVALUATES, LOADS = "training_step", "evaluation_loop", "from_pretrained"


def steps(count: int) -> str:
    return "".join(
        f"{{'loss': {2.5 - 0.01 * n:.4f}, 'grad_norm': 0.51, 'learning_rate': 0.0002, 'epoch': {n / 100}}}\n"
        for n in range(1, count + 1)
    )


def ran_out(during: str, raised: tuple[str, str] = FORWARD) -> str:
    frames = [("/app/train.py", "<module>"), ("transformers/trainer.py", during), raised]
    lines = "".join(f'  File "{path}", line 9, in {function}\n    call()\n' for path, function in frames)
    return f"Traceback (most recent call last):\n{lines}{ERROR}"


def page(folder: Path, log: str, config: str = "", **files: str) -> str:
    return told(written(folder, {"train.log": log, "config.yaml": YAML + config, **files}))


def test_an_evaluation_that_ran_out_is_not_answered_with_the_training_batch(tmp_path: Path) -> None:
    said = page(tmp_path, steps(50) + ran_out(EVALUATES))
    assert "The run ran out of GPU memory in an evaluation" in said
    assert "fix Wrap the evaluation in torch.no_grad()" in said
    assert "micro-batch" not in said


@pytest.mark.parametrize("caller", ["test", "debug_images", "save_samples", "visualize_batch"])
def test_pictures_and_tests_between_the_steps_are_evaluations(tmp_path: Path, caller: str) -> None:
    assert "ran out of GPU memory in an evaluation" in page(tmp_path, steps(50) + ran_out(caller))


@pytest.mark.parametrize("caller", ["test_loader", "save_all", "debug"])
def test_a_caller_whose_name_only_begins_so_is_no_evaluation(tmp_path: Path, caller: str) -> None:
    assert "in an evaluation" not in page(tmp_path, steps(50) + ran_out(caller))


def test_an_evaluation_is_known_by_the_line_that_began_it(tmp_path: Path) -> None:
    said = page(tmp_path, steps(50) + "***** Running Evaluation *****\n  Num examples = 2000\n" + ran_out(TRAINS))
    assert "ran out of GPU memory in an evaluation" in said


def test_an_evaluation_that_training_followed_is_over(tmp_path: Path) -> None:
    trained = "[step 10] loss=2.41 | lr=0.1\n***** Running Evaluation *****\n[step 11] loss=2.40 | lr=0.1\n"
    said = page(tmp_path, trained + ran_out(TRAINS))
    assert "ran out of GPU memory in the forward pass" in said
    assert "fix Halve the micro-batch" in said


def test_a_forward_pass_that_ran_out_asks_for_a_smaller_batch_then_a_shorter_sequence(tmp_path: Path) -> None:
    said = page(tmp_path, ran_out(TRAINS))
    assert "ran out of GPU memory in the forward pass" in said
    assert "fix Halve the micro-batch and double the accumulation steps" in said
    assert "then shorten the sequence (now micro_batch_size = 4, config.yaml:2)" in said
    assert "Turn activation checkpointing on" in said


@pytest.mark.parametrize(
    ("config", "asked"), [("bf16: false\n", True), ("bf16: false\nfp16: true\n", False), ("", False)]
)
def test_bf16_is_asked_for_where_the_run_trains_in_full_precision(tmp_path: Path, config: str, *, asked: bool) -> None:
    said = page(tmp_path, ran_out(TRAINS), config)
    assert ("Train in bf16: activations take half the memory" in said) is asked


def test_weights_that_do_not_fit_are_loaded_in_fewer_bits(tmp_path: Path) -> None:
    said = page(tmp_path, ran_out("main", ("transformers/modeling_utils.py", LOADS)))
    assert "ran out of GPU memory while it loaded the model" in said
    assert "fix Load the weights in 4 or 8 bit, or train in fp8 (load_in_4bit, load_in_8bit, fp8)" in said
    assert "micro-batch" not in said


@pytest.mark.parametrize(
    ("raised", "during", "phase"),
    [
        (("torch/nn/modules/module.py", "convert"), "main", "while it loaded the model"),
        (("torch/nn/functional.py", "silu"), "parallel_apply", "in the forward pass"),
        (("/app/model.py", "forward"), "estimate_loss", "in an evaluation"),
        (("trl/trainer/utils.py", "selective_log_softmax"), "_compute_loss", "while it computed the logits"),
    ],
)
def test_the_phase_is_that_of_the_frames(tmp_path: Path, raised: tuple[str, str], during: str, phase: str) -> None:
    assert f"ran out of GPU memory {phase}" in page(tmp_path, ran_out(during, raised))


ADAM = ("torch/optim/adamw.py", "_init_group")
EAGER = ("transformers/models/llama/modeling_llama.py", "eager_attention_forward")
ALONE = "micro_batch_size: 1\ngradient_accumulation_steps: 16\nsequence_len: 8192\n"
SHORTER = "Shorten the longest sequence, or pack and cap it; see that attention is fused"
SHARD = "Shard the optimizer states over the ranks (ZeRO, FSDP), use an 8-bit optimizer, or off-load them"


@pytest.mark.parametrize(
    ("raised", "config", "first"),
    [
        (ADAM, "optimizer: adamw_torch\n", SHARD),
        (ADAM, "deepspeed: deepspeed_configs/zero1.json\n", SHARD),
        (EAGER, "attn_implementation: eager\ngradient_checkpointing: true\n", "Use a fused attention (sdpa or flash"),
        (FORWARD, "gradient_checkpointing: false\n", "Turn activation checkpointing on"),
        (FORWARD, "gradient_checkpointing: true\n", SHORTER),
    ],
    ids=["optimizer states", "off-load", "attention", "checkpointing", "sequence"],
)
def test_a_batch_of_one_asks_for_what_the_step_holds_besides(
    tmp_path: Path, raised: tuple[str, str], config: str, first: str
) -> None:
    run = written(tmp_path, {"train.log": ran_out(TRAINS, raised), "config.yaml": ALONE + config})
    assert "ran out of GPU memory in the " in told(run)
    assert "micro-batch" not in told(run)
    actions = [one.text for one in report(run).verdict.actions if "what holds the memory" not in one.text]
    assert first.startswith(actions[0][:30])
    assert first in told(run)


@pytest.mark.parametrize(("attention", "is_told"), [("", True), ("attn_implementation: sdpa\n", False)])
def test_where_no_setting_says_which_attention_is_used_it_is_asked_for(
    tmp_path: Path, attention: str, *, is_told: bool
) -> None:
    config = f"micro_batch_size: 1\nsequence_len: 8192\ngradient_checkpointing: true\n{attention}"
    said = told(written(tmp_path, {"train.log": ran_out(TRAINS), "config.yaml": config}))
    assert "Shorten the longest sequence, or pack and cap it" in said
    assert ("; see that attention is fused (sdpa, flash_attention_2)" in said) is is_told


KEPT = "It had fitted until then: where memory rose with the steps, something is kept of each"


@pytest.mark.parametrize(("count", "is_told"), [(3, True), (2, False)])
def test_a_run_that_had_fitted_asks_whether_memory_rose(tmp_path: Path, count: int, *, is_told: bool) -> None:
    said = page(tmp_path, "".join(f"[step {n}] loss={3 - n / 100}\n" for n in range(1, count + 1)) + ran_out(TRAINS))
    assert (KEPT in said) is is_told


def test_an_evaluation_that_ran_out_does_not_ask_whether_memory_rose(tmp_path: Path) -> None:
    assert KEPT not in page(tmp_path, steps(50) + ran_out(EVALUATES))


def test_weights_that_are_put_on_the_device_one_by_one_are_loaded(tmp_path: Path) -> None:
    error = ran_out("main", ("accelerate/utils/modeling.py", "set_module_tensor_to_device"))
    assert "fix Load the weights in 4 or 8 bit" in page(tmp_path, error)


@pytest.mark.parametrize("config", ["attn_implementation: sdpa\n", "attn_implementation: flash_attention_2\n"])
def test_what_is_fused_or_recomputed_already_is_not_asked_for(tmp_path: Path, config: str) -> None:
    log = ran_out(TRAINS, ("transformers/models/llama/modeling_llama.py", "forward"))
    run = written(tmp_path, {"train.log": log, "config.yaml": ALONE + config + "gradient_checkpointing: true\n"})
    texts = " ".join(action.text for action in report(run).verdict.actions)
    assert "fused attention" not in texts
    assert "activation checkpointing" not in texts


def test_a_request_where_logits_are_computed_asks_for_the_loss_in_pieces(tmp_path: Path) -> None:
    said = page(tmp_path, ran_out(TRAINS, ("trl/trainer/grpo_trainer.py", "_get_per_token_logps")))
    assert "Compute the logits and the loss in pieces" in said
    assert "Halve the micro-batch" in said


def test_weights_that_are_quantised_already_are_sharded(tmp_path: Path) -> None:
    said = page(tmp_path, ran_out("main", ("transformers/modeling_utils.py", LOADS)), "load_in_4bit: true\n")
    assert "fix Shard the weights over more devices" in said


def test_a_run_without_a_snapshot_is_told_how_to_take_one(tmp_path: Path) -> None:
    assert "axolotl writes a memory snapshot of the steps in profiler_steps" in page(tmp_path, ran_out(TRAINS))


def test_another_trainer_is_not_told_of_a_setting_of_axolotl(tmp_path: Path) -> None:
    said = told(written(tmp_path, {"train.log": ran_out(TRAINS)}))
    assert "torch.cuda.memory._record_memory_history()" in said
    assert "profiler_steps" not in said


def test_an_error_after_many_records_without_numbers_did_not_come_at_the_start(tmp_path: Path) -> None:
    late = report(written(tmp_path / "late", {"train.log": steps(50) + ran_out(TRAINS)}))
    early = report(written(tmp_path / "early", {"train.log": steps(1) + ran_out(TRAINS)}))
    assert "OOM006" not in {f.rule for f in late.findings}
    assert "OOM006" in {f.rule for f in early.findings}


def climbing(step: int) -> float:
    return 20 + 0.01 * step


def stairs(step: int) -> float:
    return 20 + 2.0 * (step // 500)


@pytest.mark.parametrize("held", [climbing, stairs])
def test_memory_that_grows_asks_for_a_snapshot_of_kempnerforge(tmp_path: Path, held: Callable[[int], float]) -> None:
    lines = (
        f"[step {n}] loss={3 - n / 2000:.4f} | gpu/allocated_gb={held(n):.2f} | gpu/peak_gb={held(n) + 9:.2f}\n"
        for n in range(10, 2500, 10)
    )
    said = told(written(tmp_path, {"train.log": "".join(lines)}))
    assert (
        "Let DeviceMemoryMonitor write a snapshot on one rank (several hundred MB): set its snapshot_step beyond"
        in said
    )


def test_memory_that_grows_at_each_step_is_answered_with_what_a_log_keeps(tmp_path: Path) -> None:
    lines = (f"step {n} | loss {3 - n / 2000:.4f} | gpu/allocated_gb {climbing(n):.2f}\n" for n in range(10, 2500, 10))
    said = told(written(tmp_path, {"train.log": "".join(lines)}))
    assert "(log loss.item() or loss.detach())" in said
    assert "torch.cuda.memory._record_memory_history()" in said


@pytest.mark.parametrize(("grows", "cause"), [(0.06, "fragmentation"), (0.0, "")])
def test_a_gap_is_measured_by_step_where_each_number_is_a_record_of_its_own(
    tmp_path: Path, grows: float, cause: str
) -> None:
    lines = (
        f'{{"step": {n}, "{name}": {value}}}\n'
        for n in range(1, 301)
        for name, value in (
            ("loss", 3 - n / 200),
            ("memory/max_active(GiB)", 44 + n % 3 / 50),
            ("memory/max_reserved(GiB)", 48 + grows * n + n % 2 / 50),
        )
    )
    assert report(written(tmp_path, {"metrics.jsonl": "".join(lines)})).verdict.cause == cause


def peaks(*values: float, tail: str = "") -> str:
    return "".join(
        f"[step {200 * n}] loss={3 - n / 100:.4f} | gpu/peak_gb={value}{tail}\n" for n, value in enumerate(values, 1)
    )


CREEP = (78.4, 78.4, 78.4, 78.4, 78.6, 78.6, 78.6, 78.6, 78.6, 79.1)


def test_a_little_growth_is_told_where_little_is_left(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"train.log": peaks(*CREEP)}))
    assert "Peak allocated memory creeps up from 78.4 GiB to 79.1 GiB" in page
    assert "921.6 MiB of a device of 80 GiB is left" in page
    assert "compare: the sites that grew are the leak" in page


@pytest.mark.parametrize(
    "values",
    [
        (78.4,) * 10,
        tuple(reversed(CREEP[:5])) + (78.6,) * 5,
        (78.4, 78.6, *(79.1,) * 8),
        tuple(value - 30 for value in CREEP),
        (*(78.4,) * 8, 78.4, 79.1),
    ],
)
def test_a_level_a_rise_that_ended_one_with_room_and_one_batch_are_no_creep(
    tmp_path: Path, values: tuple[float, ...]
) -> None:
    assert report(written(tmp_path, {"train.log": peaks(*values)})).findings == ()


def test_a_creep_that_ended_the_run_is_its_cause_and_not_the_batch(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"train.log": peaks(*CREEP) + ran_out(TRAINS)}))
    assert page.startswith("FAILED oom")
    assert "creeps up from 78.4 GiB to 79.1 GiB" in page
    assert "memory then ran out after step 2000" in page
    assert "compare: the sites that grew are the leak" in page


@pytest.mark.parametrize(("peak", "leads"), [(22.0, True), (2.0, False)])
def test_tensors_that_grow_between_peaks_explain_an_error_where_the_peak_fills_the_device(
    tmp_path: Path, peak: float, *, leads: bool
) -> None:
    lines = "".join(
        f"[step {n}] loss={3 - n / 4000:.4f} | gpu/allocated_gb={54 + 0.0015 * n:.3f} |"
        f" gpu/peak_gb={54 + peak + 0.0015 * n:.3f}\n"
        for n in range(20, 1220, 20)
    )
    page = told(written(tmp_path, {"train.log": lines + ran_out(TRAINS)}))
    assert ("rises steadily" in page and "memory then ran out after step 1200" in page) is leads


def reserving(held: Callable[[int], float], records: int = 120, tail: str = "") -> dict[str, str]:
    """A log of torchtitan, whose memory is the most that was reserved since the line before."""
    lines = (
        f"[rank0]:[titan] 2026-05-02 07:{n // 60:02}:{n % 60:02},120 - root - INFO - step: {n:2}"
        f"  loss: {3 - n / 400:.5f}"
        f"  grad_norm:  0.8120  memory: {held(n):.2f}GiB({held(n) / 0.791:.2f}%)  tps: 6,{700 + n % 9}  tflops: 180.20"
        "  mfu: 18.20%\n"
        for n in range(1, records + 1)
    )
    return {"train.log": "".join(lines) + tail}


@pytest.mark.parametrize("held", [lambda n: 31 + 0.36 * n, lambda n: 31 + 7.3 * (n // 20)])
def test_reserved_memory_that_climbs_to_the_error_is_its_cause_where_nothing_else_is_logged(
    tmp_path: Path, held: Callable[[int], float]
) -> None:
    page = told(written(tmp_path, reserving(held, tail=ran_out(TRAINS))))
    assert "Peak reserved memory climbs from 3" in page
    assert "memory then ran out after step 120" in page
    assert "where the second grows alone, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in page
    assert "compare: the sites that grew are the leak" in page


@pytest.mark.parametrize("held", [lambda n: 61 + n % 2 / 50, lambda n: min(61.0, 40 + 2 * n)])
def test_reserved_memory_that_keeps_its_level_leaves_the_error_to_the_batch(
    tmp_path: Path, held: Callable[[int], float]
) -> None:
    page = told(written(tmp_path, reserving(held, tail=ran_out(TRAINS))))
    assert "climbs" not in page
    assert "Halve the micro-batch" in page


def test_what_the_driver_counts_in_a_file_of_its_own_is_compared_with_what_one_process_reserves(tmp_path: Path) -> None:
    level = peaks(*(48.0,) * 60, tail=" | gpu/reserved_gb=51.0")
    far = report(written(tmp_path / "far", {"nvidia-smi.csv": used(58, 58), "train.log": level}))
    near = report(written(tmp_path / "near", {"nvidia-smi.csv": used(52, 52), "train.log": level}))
    assert {f.cause for f in far.findings} == {"outside_allocator"}
    assert near.findings == ()


def used(first: float, last: float, records: int = 60) -> str:
    lines = ["timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]"]
    for n in range(records):
        mib = int((first + (last - first) * n / records) * 1024)
        lines.append(f"2025/11/20 08:{n:02}:00.000, 0, NVIDIA H100 80GB HBM3, {mib} MiB, 81559 MiB, 98 %")
    return "\n".join(lines) + "\n"


def test_used_memory_that_climbs_is_told_from_the_drivers_count_alone(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"nvidia-smi.csv": used(64, 71)}))
    assert "SUSPECT oom" in page
    assert "Used memory of GPU 0 climbs from 64" in page
    assert "torch.cuda.memory_allocated() and memory_reserved()" in page


def test_what_grows_beside_a_level_reservation_is_outside_of_the_framework(tmp_path: Path) -> None:
    level = peaks(*(60.0,) * 60, tail=" | gpu/reserved_gb=62.0")
    page = told(written(tmp_path, {"nvidia-smi.csv": used(63, 70), "train.log": level}))
    assert "while the framework's reserved memory stays at 62 GiB" in page
    assert "(outside_allocator, confidence" in page
    assert "nvidia-smi --query-compute-apps=pid,used_memory" in page


@pytest.mark.parametrize(("first", "last"), [(64, 64), (64, 64.4)])
def test_used_memory_that_stays_is_not_told(tmp_path: Path, first: float, last: float) -> None:
    assert report(written(tmp_path, {"nvidia-smi.csv": used(first, last)})).findings == ()


def test_used_memory_that_grows_with_the_reservation_is_told_of_the_reservation_only(tmp_path: Path) -> None:
    grows = "".join(
        f"[step {n}] loss={3 - n / 100:.4f} | gpu/allocated_gb={40 + n / 10} | gpu/reserved_gb={62 + n / 10}\n"
        for n in range(1, 61)
    )
    said = report(written(tmp_path, {"nvidia-smi.csv": used(63, 70), "train.log": grows}))
    assert "OOM026" not in {f.rule for f in said.findings}


@pytest.mark.parametrize(("began", "told_of"), [(0, True), (50, False)], ids=["while it trained", "before it trained"])
def test_a_device_fills_before_the_first_step(tmp_path: Path, began: int, told_of: bool) -> None:
    stays = used(66, 66).splitlines()[51:]
    climbs = used(63, 66, 50) + "\n".join(stays) + "\n"
    lines = [
        f"2025-11-20 08:{n:02}:00,000 step {n} loss {3 - n / 100:.4f} gpu/reserved_gb=62.0 step_time {1 + n % 3 / 50}"
        for n in range(began, 60)
    ]
    said = report(written(tmp_path, {"nvidia-smi.csv": climbs, "train.log": "\n".join(lines) + "\n"}))
    assert ("OOM026" in {f.rule for f in said.findings}) is told_of


def jumping(low: float, high: float, at: int, records: int = 60) -> str:
    first, last = used(low, low, records).splitlines(), used(high, high, records).splitlines()
    return "\n".join([*first[: at + 1], *last[at + 1 :]]) + "\n"


@pytest.mark.parametrize("at", [9, 40])
def test_a_jump_of_used_memory_beside_a_level_reservation_is_another_program(tmp_path: Path, at: int) -> None:
    level = peaks(*(48.0,) * 60, tail=" | gpu/reserved_gb=51.0")
    page = told(written(tmp_path, {"nvidia-smi.csv": jumping(51.6, 58, at), "train.log": level}))
    assert page.startswith("SUSPECT oom")
    assert "Used memory of GPU 0 jumps from 51.6 GiB to 58 GiB" in page
    assert f"(nvidia-smi.csv:{at + 2})" in page
    assert "nvidia-smi --query-compute-apps=pid,used_memory" in page


@pytest.mark.parametrize(("low", "high"), [(51.6, 53.4), (50.2, 56.0)], ids=["communicators", "before it was up"])
def test_a_jump_that_the_run_can_have_made_itself_is_no_warning(tmp_path: Path, low: float, high: float) -> None:
    level = peaks(*(48.0,) * 60, tail=" | gpu/reserved_gb=51.0")
    said = report(written(tmp_path, {"nvidia-smi.csv": jumping(low, high, 20), "train.log": level}))
    assert said.verdict.outcome is Outcome.CANNOT_SAY


SUMMARY = """|===========================================================================|
|            CUDA OOMs: 0            |        cudaMalloc retries: {retries}         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
| Allocated memory      |  52224 MiB |  60416 MiB |   9216 GiB |   9165 GiB |
| GPU reserved memory   |  75776 MiB |  75776 MiB |  75776 MiB |      0 B   |
| Non-releasable memory |  {lost} MiB |  23552 MiB |   4096 GiB |   4075 GiB |
| Non-releasable allocs |     600    |     700    |    400 K   |    399 K   |
"""


def test_a_memory_summary_shows_fragmentation_and_its_setting(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"train.log": steps(30) + SUMMARY.format(retries=4, lost=21217)}))
    assert "28 % of the memory that the allocator reserves cannot be given back" in page
    assert "it freed its cache and tried again 4 times" in page
    assert "expandable_segments:True" in page


def test_a_memory_summary_of_a_sound_allocator_says_nothing(tmp_path: Path) -> None:
    log = steps(30) + SUMMARY.format(retries=0, lost=" 1217")
    assert "OOM027" not in {f.rule for f in report(written(tmp_path, {"train.log": log})).findings}


def test_the_last_memory_summary_counts(tmp_path: Path) -> None:
    log = steps(30) + SUMMARY.format(retries=0, lost=21217) + SUMMARY.format(retries=0, lost=" 1217")
    assert "OOM027" not in {f.rule for f in report(written(tmp_path, {"train.log": log})).findings}


def titan(last: int, grown: float) -> str:
    """The log of a job that prints the steps of rank 0, whose memory grows from step 40 on."""
    return "".join(
        f"[rank0]:[titan] 2031-05-06 07:{n // 6:02d}:{n % 6 * 10:02d},000 - root - INFO - step: {n}  loss: 3.0000  "
        f"grad_norm: 1.0000  memory: {58.2 + grown * max(0, n - 40) / (last - 40):.2f}GiB(73.58%)  tps: 6,500  "
        f"tflops: 370.00  mfu: 38.00%\n"
        for n in range(1, last + 1)
    )


def rank_3_ran_out(log: str, folder: Path) -> Report:
    return report(written(folder, {"train.log": log + f"[rank3]: {ERROR.replace('GPU 0', 'GPU 3')}"}))


def test_the_rank_that_logs_its_memory_alone_speaks_for_the_one_that_ran_out(tmp_path: Path) -> None:
    verdict = rank_3_ran_out(titan(120, 20.8), tmp_path / "full").verdict
    assert (verdict.cause, verdict.culprits) == ("device_memory_grows", (3,))
    assert verdict.onset.step in range(38, 46)


def test_a_rank_with_room_does_not_speak_for_the_one_that_ran_out(tmp_path: Path) -> None:
    small = titan(120, 3.0).replace("memory: 5", "memory: 1").replace("memory: 6", "memory: 1")
    verdict = rank_3_ran_out(small, tmp_path / "room").verdict
    assert (verdict.cause, verdict.onset.step) == ("gpu_out_of_memory", 120)


def test_an_error_without_a_time_has_that_of_the_last_record_before_it(tmp_path: Path) -> None:
    begins = "[rank0]:[titan] 2031-05-06 07:00:00,000 - root - INFO - Training starts at step 1\n"
    (lead,) = [f for f in rank_3_ran_out(begins + titan(120, 0.0), tmp_path).findings if f.rule.startswith("OOM001")]
    assert lead.onset.t_ns == 1_935_818_400_000_000_000  # 07:20:00, of step 120


@pytest.mark.parametrize(
    ("end", "dies"),
    [
        (" - trying batch 8 instead of 12", False),
        (", reducing to batch 32 and retrying", False),
        (". Try reducing the batch size", True),
    ],
)
def test_an_error_whose_own_line_goes_on_with_a_smaller_batch_ends_no_run(
    tmp_path: Path, end: str, *, dies: bool
) -> None:
    error = f"2022-08-14 10:00:01 | WARNING | RuntimeError: CUDA out of memory. Tried to allocate 2.40 GiB{end}\n"
    unread = "".join(f"2022-08-14 10:00:{n:02} | INFO | c{n} is done\n" for n in range(2, 40))
    verdict = report(written(tmp_path, {"detector.log": error + unread})).verdict
    assert (verdict.outcome is Outcome.FAILED) is dies


@pytest.mark.parametrize("died", [True, False])
def test_a_gap_that_a_run_died_of_is_no_forecast_any_more(tmp_path: Path, *, died: bool) -> None:
    log = "".join(
        f"step {n} loss {3 - n / 900:.4f} alloc 38.1 GiB reserved {44 + n * 0.04:.1f} GiB\n" for n in range(10, 850, 10)
    )
    error = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.20 GiB. GPU 2 has a total capacity of"
        " 79.10 GiB of which 1.90 GiB is free. Of the allocated memory 38.40 GiB is allocated by PyTorch, and 37.11 GiB"
        " is reserved by PyTorch but unallocated.\n"
    )
    found = report(written(tmp_path, {"train.log": log + error * died})).findings
    [title] = [f.title for f in found if f.rule == "OOM004"]
    assert ("memory then ran out after step 840" in title) is died
