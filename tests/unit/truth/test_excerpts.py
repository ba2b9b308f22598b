"""Excerpts of a log: short, cut off at both ends, without a first step and without an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.knowledge.errors import by_id
from forensics.model import Outcome, Shape
from tests.unit.truth._runs import TRACEBACK, falling, judged, said, shape

FALL = (
    "[2026-01-02 03:04:0{i},018] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step."
)
FALL += " Attempted loss scale: {of:g}, reducing to {to:g}"


def falls(top: float, count: int) -> list[str]:
    return [FALL.format(i=i, of=top / 2**i, to=top / 2 ** (i + 1)) for i in range(count)]


def test_a_loss_scale_that_falls_five_times_in_a_row_to_the_end_collapsed(tmp_path: Path) -> None:
    verdict = said(tmp_path, falls(64, 5))
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.NAN, "loss_scale_collapse")


@pytest.mark.parametrize(
    ("top", "count", "after"),
    [(65536, 5, 0), (64, 4, 0), (64, 5, 3)],
    ids=["the search for a scale at the start", "four falls", "losses of later updates"],
)
def test_a_loss_scale_that_is_still_searched_for_did_not(tmp_path: Path, top: float, count: int, after: int) -> None:
    later = [f"{{'loss': 2.{i}, 'learning_rate': 1e-05, 'epoch': 0.{i}}}" for i in range(1, after + 1)]
    assert said(tmp_path, [*falls(top, count), *later]).cause != "loss_scale_collapse"


NCCL = "torch.distributed.DistBackendError: NCCL error in: ../torch/NCCLUtils.hpp:275, {what}, NCCL version 2.19.3"
LAST = "Last error:"


@pytest.mark.parametrize(
    ("what", "below", "cause"),
    [
        ("invalid usage", (), "communicator_invalid_usage"),
        ("unhandled system error (run with NCCL_DEBUG=INFO for details)", (), "network_or_system_error"),
        ("internal error - please report this issue to the NCCL developers", (), "communicator_internal_error"),
        ("unhandled cuda error (run with NCCL_DEBUG=INFO for details)", (), "communicator_cuda_error"),
        (
            "internal error - please report this issue to the NCCL developers",
            ("ncclInternalError: Internal check failed.", LAST, "Bootstrap : no socket interface found"),
            "network_interface_unusable",
        ),
        ("a new kind of failure", (), "uncaught_exception"),
    ],
)
def test_an_exception_of_nccl_says_what_kind_of_failure_it_was(
    tmp_path: Path, what: str, below: tuple[str, ...], cause: str
) -> None:
    verdict = said(tmp_path, [*TRACEBACK, NCCL.format(what=what), *below])
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.CRASH, cause)


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ("died with <Signals.SIGKILL: 9>.", "silent_death_sigkill"),
        ("died with <Signals.SIGSEGV: 11>.", "silent_death_segv"),
        ("returned non-zero exit status 137.", "silent_death_sigkill"),
        ("returned non-zero exit status 1.", "child_failed"),
    ],
)
def test_a_launcher_s_exception_tells_how_its_child_ended(tmp_path: Path, end: str, cause: str) -> None:
    raised = f"subprocess.CalledProcessError: Command '['python', 'pretrain.py', '--width=64']' {end}"
    assert said(tmp_path, [*TRACEBACK, raised]).cause == cause


def test_a_dead_worker_of_ray_is_looked_for_on_its_node(tmp_path: Path) -> None:
    lines = (
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.",
    )
    assert said(tmp_path, lines).cause == "worker_died"


MLX = "Iter {at}: Train loss {loss}, Learning Rate 1.000e-04, It/sec 0.9, Tokens/sec 410.0, Trained Tokens {at}00"


@pytest.mark.parametrize(
    ("losses", "is_diverged"),
    [
        ((1.7, 1.5, 3.6, 6.1, 5.2, 4.9, 4.7), True),
        ((1.7, 1.5, 3.6, 6.1, 5.2, 4.9, 1.6), False),
        ((1.7, 1.5, 3.6), False),
    ],
)
def test_five_losses_at_twice_all_before_them_left_their_course(
    tmp_path: Path, losses: tuple[float, ...], is_diverged: bool
) -> None:
    lines = [MLX.format(at=25 * i, loss=loss) for i, loss in enumerate(losses, start=1)]
    assert (said(tmp_path, lines).cause == "diverged") is is_diverged


def test_falls_of_the_scale_with_many_updates_in_between_are_no_burst(tmp_path: Path) -> None:
    lines = falls(0.25, 5)
    records = [f"step {at} | loss {12 - at / 100:.2f}" for at in (190, 290, 390, 490)]
    mixed = [line for pair in zip(lines, ["", *records], strict=True) for line in pair if line]
    assert said(tmp_path, mixed).cause != "loss_scale_collapse"


@pytest.mark.parametrize(("at", "cause"), [(4, "from_start"), (27, "unknown")])
def test_a_detector_that_speaks_after_ten_finite_steps_tells_of_no_bad_start(
    tmp_path: Path, at: int, cause: str
) -> None:
    raised = f"FloatingPointError: Loss became infinite or NaN at iteration={at}!"
    assert said(tmp_path, [*TRACEBACK, raised]).cause == cause


def test_an_exception_at_the_least_loss_scale_is_no_bad_start(tmp_path: Path) -> None:
    record = "| epoch 028 | loss 3.976 | ppl 4.61 | num_updates 9165 | lr 0.0003 | gnorm 0.635 | loss_scale 0.000"
    verdict = said(tmp_path, [record, *TRACEBACK, "FloatingPointError: Minimum loss scale reached (0.0001)."])
    assert (verdict.shape, verdict.cause) == (Shape.NAN, "loss_scale_collapse")


def test_a_worker_that_ray_killed_for_memory_is_no_traceback_that_was_cut(tmp_path: Path) -> None:
    killed = "(raylet) node_manager.cc:3069: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers"
    verdict = said(tmp_path, [killed, *TRACEBACK])
    assert (verdict.shape, verdict.cause) == (Shape.OOM, "host_out_of_memory")


@pytest.mark.parametrize(
    ("word", "is_read"), [("No log", True), ("N/A", True), ("late", True), ("late | worse", False)]
)
def test_a_cell_without_a_value_leaves_its_row_in_the_table(tmp_path: Path, word: str, is_read: bool) -> None:
    rows = [f"{at} | {word} | {loss}" for at, loss in enumerate(("0.69", "0.66", "nan", "nan"), start=1)]
    verdict = said(tmp_path, ["Epoch | Training Loss | Validation Loss", "-- | -- | --", *rows, "5 | 0.51 | nan"])
    assert (verdict.shape is Shape.NAN) is is_read


@pytest.mark.parametrize(
    ("last", "cause"),
    [
        ("node3:811:990 [0] NCCL INFO init.cc:1393 -> 3", "communicator_internal_error"),
        ("node3:811:990 [0] NCCL INFO init.cc:1393 -> 2", "network_or_system_error"),
        ("node3:811:990 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[2] via P2P/IPC", ""),
    ],
)
def test_a_log_that_ends_where_nccl_came_back_says_what_it_came_back_with(
    tmp_path: Path, last: str, cause: str
) -> None:
    assert (
        said(tmp_path, ["node3:811:990 [0] NCCL INFO Bootstrap : Using eth0:10.1.0.9<0>", last]).cause or ""
    ) == cause


def test_mpi_that_fails_to_start_is_a_crash(tmp_path: Path) -> None:
    lines = ("*** An error occurred in MPI_Init_thread", "*** on a NULL communicator")
    assert said(tmp_path, lines).cause == "mpi_failed"


@pytest.mark.parametrize(
    ("raised", "what", "cause"),
    [
        ("RuntimeError: DataLoader timed out after 60 seconds", Shape.HANG, "loader_stalled"),
        ("IndexError: index out of range in self", Shape.CRASH, "index_out_of_range"),
        ("IndexError: list index out of range", Shape.CRASH, "uncaught_exception"),
        ("datasets.exceptions.DatasetGenerationError: a dataset was not generated", Shape.CRASH, "data_unreadable"),
        ("datasets.exceptions.DatasetNotFoundError: no such dataset", Shape.CRASH, "model_not_available"),
    ],
)
def test_an_exception_of_a_library_is_what_its_words_say(tmp_path: Path, raised: str, what: Shape, cause: str) -> None:
    verdict = said(tmp_path, [*TRACEBACK, raised])
    assert (verdict.shape, verdict.cause) == (what, cause)


@pytest.mark.parametrize(("top", "collapses"), [(1, True), (4, False)], ids=["from one down", "from four down"])
def test_three_falls_of_a_loss_scale_that_is_below_one_are_a_collapse(
    tmp_path: Path, top: float, *, collapses: bool
) -> None:
    verdict = said(tmp_path, falls(top, 3))
    assert (verdict.cause == "loss_scale_collapse") == collapses


INSTALLED = "/opt/env/lib/python3.11/site-packages"
OWN = ("Traceback (most recent call last):", '  File "run.py", line 8, in main', "    trainer = build(args)")


def frames(*places: str) -> list[str]:
    return [line for place in places for line in (f'  File "{place}", line 4, in call', "    step()")]


@pytest.mark.parametrize(
    ("places", "library"),
    [
        ([f"{INSTALLED}/windmill/{name}.py" for name in ("build", "plan", "kind", "level")], "windmill"),
        ([f"{INSTALLED}/windmill/build.py", f"{INSTALLED}/windmill/plan.py"], ""),
        ([f"{INSTALLED}/windmill/{name}.py" for name in ("build", "plan", "kind", "level")] + ["model.py"], ""),
    ],
    ids=["four frames deep", "two frames deep", "called back into the program"],
)
def test_an_error_far_inside_a_package_asks_for_its_version_too(
    tmp_path: Path, places: list[str], library: str
) -> None:
    verdict = said(tmp_path, [*OWN, *frames(*places), "ValueError: a level of -1 is not known"])
    asked = [
        one for one in verdict.actions if one.text.startswith(f"It was raised inside {library}: look for these words")
    ]
    assert verdict.cause == "uncaught_exception"
    assert [one.command for one in asked] == (["pip show windmill"] if library else [])


@pytest.mark.parametrize(
    ("deep", "whose"), [(4, "it was raised inside windmill"), (1, "the error is the program's own")]
)
def test_an_error_is_not_the_programs_own_where_a_package_raised_it_far_inside(
    tmp_path: Path, deep: int, whose: str
) -> None:
    places = [f"{INSTALLED}/windmill/{name}.py" for name in ("build", "plan", "kind", "level")[:deep]]
    lines = [*OWN, *frames(*places), "ValueError: a level of -1 is not known"]
    report = judged(tmp_path, {"train.log": lines})
    assert report.findings[report.verdict.lead or 0].because.startswith(whose)


def test_an_exception_without_frames_names_the_package_of_its_class(tmp_path: Path) -> None:
    verdict = said(tmp_path, ["step 3 loss 2.5", "windmill.core.PlanError: eight plans asked for, one can be had"])
    assert verdict.actions[0].command == "pip show windmill"


@pytest.mark.parametrize(
    "raised",
    ["windmill.PlanError", "windmill.core.errors.PlanError", "windmill.core.WindMillError", "json.decoder.BrokenError"],
)
def test_a_class_that_a_package_raises_on_purpose_asks_for_no_version(tmp_path: Path, raised: str) -> None:
    verdict = said(tmp_path, ["step 3 loss 2.5", f"{raised}: eight plans asked for, one can be had"])
    assert (verdict.cause, verdict.actions[0].command) == ("uncaught_exception", None)


def test_a_job_that_slurm_requeues_was_preempted(tmp_path: Path) -> None:
    line = "slurmstepd: error: *** JOB 77 ON gpu3 CANCELLED AT 2026-01-02T03:04:05 DUE TO {} ***"
    assert said(tmp_path / "a", [line.format("JOB REQUEUE")]).cause == "preempted"
    assert said(tmp_path / "b", [line.format("JOB DEADLINE")]).cause == "cancelled"


def test_a_time_out_on_an_npu_asks_for_its_device_logs_and_for_nothing_of_nccl(tmp_path: Path) -> None:
    verdict = said(tmp_path, ["RuntimeError: ACL stream synchronize failed, error code is 107020"])
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.HANG, "collective_timeout")
    told = " ".join(f"{one.text} {one.command}" for one in verdict.actions)
    assert "plog" in told
    assert "NCCL" not in told


def test_a_line_that_says_the_step_of_a_save_knows_better_than_the_number_of_its_path(tmp_path: Path) -> None:
    epoch = "| epoch 028 | loss 3.9 | nll_loss 2.2 | num_updates 9165 | lr 0.0003 | gnorm 0.6 | clip 0.000"
    saved = "| saved checkpoint ck/checkpoint28.pt (epoch 28 @ 9165 updates) (writing took 7.2 seconds)"
    verdict = said(tmp_path, [epoch, saved, *OWN, "FloatingPointError: Minimum loss scale reached (0.0001)."])
    assert verdict.onset.step == 9166
    assert verdict.checkpoint is not None
    assert (verdict.checkpoint.step, verdict.checkpoint.path) == (9165, "ck/checkpoint28.pt")


BARE = "RuntimeError: DataLoader worker (pid 41) exited unexpectedly with exit code 1."


def test_the_advice_of_a_lone_line_is_that_of_its_own_row(tmp_path: Path) -> None:
    verdict = said(tmp_path, ["step 3 loss 2.5", BARE])
    assert verdict.cause == "loader_worker_died"
    assert verdict.actions[0].text == by_id()["dl-exited"].fix


STACK = (
    "The above operation failed in interpreter.",
    "Traceback (most recent call last):",
    '  File "/opt/pool.py", line 39',
    "    return out.scatter_add_(dim, index, src)",
)


@pytest.mark.parametrize(("above", "cause"), [(0, "device_assert"), (1, "uncaught_exception")])
def test_a_stack_of_torchscript_is_a_part_of_the_message_above_it(tmp_path: Path, above: int, cause: str) -> None:
    verdict = said(tmp_path, ["RuntimeError: CUDA error: device-side assert triggered", *STACK[above:]])
    assert verdict.cause == cause


ENDING = "RuntimeError: can't create new thread at interpreter shutdown"


@pytest.mark.parametrize(
    ("above", "outcome"),
    [((), Outcome.CANNOT_SAY), (("MemoryError: no room for the pool",), Outcome.FAILED)],
    ids=["nothing above", "an error above"],
)
def test_a_complaint_of_an_interpreter_that_ends_is_no_failure_by_itself(
    tmp_path: Path, above: tuple[str, ...], outcome: Outcome
) -> None:
    assert said(tmp_path, [*falling(1, 9), *above, ENDING]).outcome is outcome


@pytest.mark.parametrize(
    ("asked", "allocated", "first"),
    [("25.49", "57.77 MiB", "Find the operation that asked for it"), ("2.50", "22.90 GiB", "Halve the micro-batch")],
)
def test_a_request_beyond_the_whole_device_is_no_matter_of_the_batch(
    tmp_path: Path, asked: str, allocated: str, first: str
) -> None:
    message = f"CUDA out of memory. Tried to allocate {asked} GiB (GPU 0; 23.70 GiB total capacity; {allocated} already"
    verdict = said(tmp_path, [f"RuntimeError: {message} allocated; 0.20 GiB free; 23.10 GiB reserved by PyTorch)"])
    assert verdict.actions[0].text.startswith(first)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [("Cannot allocate memory", "locked_memory_limit"), ("Bad address", "")],
    ids=["limit", "other"],
)
def test_memory_that_an_adapter_cannot_pin_is_no_full_host(tmp_path: Path, reason: str, cause: str) -> None:
    line = f"node2:91:93 [1] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error {reason}"
    verdict = said(tmp_path, [line, "node2:91:93 [1] NCCL INFO transport/net_ib.cc:1012 -> 2"])
    assert (verdict.cause == "locked_memory_limit") == bool(cause)
    assert verdict.shape is Shape.CRASH


def test_a_word_in_quotes_is_program_text_only_where_it_is_indented_or_goes_on(tmp_path: Path) -> None:
    line = '"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"'
    assert said(tmp_path / "a", [line]).cause == "gpu_not_supported"
    assert said(tmp_path / "b", [f"    {line}", f"{line},"]).outcome is Outcome.CANNOT_SAY


def test_a_unit_in_brackets_is_a_part_of_the_name_before_it(tmp_path: Path) -> None:
    lines = [f"epoch: 8 | nupdates: {n} | bch(ms): 561.5 | fwd(ms): 52.0 | loss: {9 - n / 9:.3f}" for n in range(1, 12)]
    report = judged(tmp_path, {"train.log": lines})
    assert {"bch_ms", "fwd_ms"} & {*report.coverage.unrecognised} == {"bch_ms"}
    assert report.verdict.missing[0].signal != "loss"


@pytest.mark.parametrize(("times", "outcome"), [(1, Outcome.CANNOT_SAY), (4, Outcome.FAILED)])
def test_a_sentence_that_says_that_an_update_was_skipped_is_no_failure_until_it_comes_again(
    tmp_path: Path, times: int, outcome: Outcome
) -> None:
    line = "[host] 2026-01-02 03:04:0{},101 (trainer:58{}) WARNING: The grad norm is nan. Skipping updating the model."
    report = judged(tmp_path, {"train.log": ["loading the data", *(line.format(n, n) for n in range(times))]})
    assert report.verdict.outcome is outcome
    assert not any("ampling" in finding.title for finding in report.findings)


def test_an_epoch_without_a_finite_gradient_is_the_end_of_a_run(tmp_path: Path) -> None:
    stopped = "WARNING: The gradients at all steps are invalid in this epoch. This training was stopped at 3epoch"
    verdict = said(tmp_path, [stopped])
    assert shape(verdict) == (Outcome.FAILED, Shape.NAN)
    assert verdict.actions[0].text.startswith("Compare the lengths of inputs and texts")


@pytest.mark.parametrize(
    ("function", "key", "cause"),
    [
        ("main", "optimizer", "checkpoint_lacks_part"),
        ("load_train_checkpoint", "best_score", "checkpoint_lacks_part"),
        ("main", "best_score", "uncaught_exception"),
    ],
)
def test_a_key_that_a_checkpoint_lacks_asks_for_the_file_that_holds_it(
    tmp_path: Path, function: str, key: str, cause: str
) -> None:
    raised = [*TRACEBACK, f'  File "run.py", line 8, in {function}', "    use(state)"]
    assert said(tmp_path, [*raised, f"KeyError: '{key}'"]).cause == cause


def test_a_store_that_nobody_reaches_is_no_peer_that_went_away(tmp_path: Path) -> None:
    inner = [*TRACEBACK, "RuntimeError: connect() timed out. Original timeout was 60000 ms.", ""]
    outer = ["The above exception was the direct cause of the following exception:", "", *TRACEBACK]
    last = "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has"
    verdict = said(tmp_path, [*inner, *outer, f"{last} failed. See inner exception for details."])
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.HANG, "rendezvous_failed")


def test_a_kill_is_not_looked_for_on_one_device(tmp_path: Path) -> None:
    line = (
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: {}) local_rank: 0 (pid: 9) of binary: py"
    )
    killed, aborted = (said(tmp_path / code, [line.format(code)]) for code in ("-9", "-6"))
    asked = [any("CUDA_LAUNCH_BLOCKING" in check.text for check in one.playbook) for one in (killed, aborted)]
    assert asked == [False, True]


def test_a_log_of_evaluations_alone_is_read_as_its_trainer_s(tmp_path: Path) -> None:
    line = "2026-01-02 03:04:05,678 - mmdet - INFO - Epoch(val) [{}][10]    bbox_mAP: 0.1{}00, bbox_mAP_50: 0.2000"
    report = judged(tmp_path, {"train.log": [line.format(n, n) for n in range(1, 6)]})
    assert any("mmengine" in (file.format or "") for file in report.coverage.files)
