"""Unread: lines of libraries that the catalogue has rows for, and lines beside them that mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.api import open_run
from forensics.model import Outcome, Shape
from tests.unit.truth._runs import DONE, falling, judged, said, shape, write

HANG, CRASH = (Outcome.FAILED, Shape.HANG), (Outcome.FAILED, Shape.CRASH)
HOROVOD = (
    "[2024-05-01 10:00:00.000000: W horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be "
    "reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 "
    "seconds."
)


@pytest.mark.parametrize(
    ("lines", "culprits"),
    [
        ((HOROVOD, "Stalled ops:allreduce.grad_w1 [missing ranks: 3] "), (3,)),
        ((HOROVOD, "Stalled ranks:", "2: [allreduce.grad/w1, allreduce.grad/w2 ...]"), (2,)),
        ((HOROVOD, "Stalled ranks:", "2!: [allreduce.grad/w1]"), (2,)),  # so marked where it will be shut down
        # before 0.16 it names who came; who did not is between them, or on the fewer side
        ((HOROVOD, "Stalled ops: conv [ready ranks: 5, 1, 4, 7, 2, 3], bn [ready ranks: 5, 1, 4, 7, 2, 3]"), (0, 6)),
        ((HOROVOD, "Stalled ops: loss [ready ranks: 3], conv [ready ranks: 2, 0, 1]"), (3,)),
        ((HOROVOD, "Stalled ops: loss [ready ranks: 1], conv [ready ranks: 3]"), ()),
        ((HOROVOD, "Stalled ops: loss [ready ranks: 0, 999999999999]"), ()),
        (("Missing ranks:", "0: [metric.avg, loss.avg]", "1: [metric.avg]"), ()),
    ],
)
def test_the_stall_check_of_horovod_is_a_hang(
    lines: tuple[str, ...], culprits: tuple[int, ...], tmp_path: Path
) -> None:
    verdict = said(tmp_path, [*falling(1, 40), *lines])
    assert (*shape(verdict), verdict.culprits) == (*HANG, culprits)


def test_a_rank_that_had_spoken_is_missing_where_all_before_it_are_ready(tmp_path: Path) -> None:
    spoken = [f"[rank{r}]: step {s} | loss: {3 - s / 100:.4f}" for s in range(40) for r in range(9)]
    ready = ", ".join(map(str, range(8)))
    verdict = said(tmp_path, [*spoken, HOROVOD, f"Stalled ops: conv [ready ranks: {ready}]"])
    assert (*shape(verdict), verdict.culprits) == (*HANG, (8,))


def test_a_stall_that_training_got_over_is_none(tmp_path: Path) -> None:
    lines = [*falling(1, 40), HOROVOD, "Stalled ranks:", *falling(41, 90), DONE]
    assert said(tmp_path, lines).outcome is Outcome.HEALTHY


def test_the_report_of_a_watchdog_on_where_ranks_stood_is_a_hang(tmp_path: Path) -> None:
    head = "[rank0]:[E504 ProcessGroupNCCL.cpp:1282] [PG 0 Rank 0] NCCL watchdog thread: desync debug report:"
    verdict = said(
        tmp_path, [*falling(1, 40), head, "   - [6] joined but didn't finish collective #812 (count from 1)"]
    )
    assert (*shape(verdict), verdict.culprits) == (*HANG, (6,))


def test_the_rank_that_does_not_say_that_a_barrier_timed_out_is_the_one_that_is_missing(tmp_path: Path) -> None:
    entered = [f"[rank {r}] entering barrier {b}" for b in range(1, 8) for r in range(6) if (b, r) != (7, 4)]
    late = [f"[rank {r}] ERROR barrier 7 timed out after 1800 s" for r in (0, 1, 2, 3, 5)]
    verdict = said(tmp_path, [*entered, *late])
    assert (*shape(verdict), verdict.culprits) == (*HANG, (4,))


@pytest.mark.parametrize(("later", "told"), [([], (*HANG, (12,))), (falling(41, 90), (Outcome.CANNOT_SAY, None, ()))])
def test_a_log_that_ends_with_waiting_is_a_hang_of_whom_it_waits_for(
    later: list[str], told: tuple[Outcome, Shape | None, tuple[int, ...]], tmp_path: Path
) -> None:
    waits = [f"WARNING still waiting for rank 12 at step 40 ({seconds} s)" for seconds in range(60, 1200, 60)]
    verdict = said(tmp_path, [*falling(1, 40), *waits, *later])
    assert (*shape(verdict), verdict.culprits) == told


def test_every_rank_is_named_that_one_line_of_the_recorders_analysis_blames(tmp_path: Path) -> None:
    said_of = "Culprit rank {r}; Error type: SIZE_OR_SYNTAX_MISMATCH, Expected input sizes: '[[1025]]'"
    line = "error msg: " + ", ".join(said_of.format(r=r) for r in (22, 110))
    verdict = said(tmp_path, ["Collective 39 at entry 38 errors", "collective: nccl:all_reduce", line])
    assert (*shape(verdict), verdict.culprits, verdict.cause) == (*HANG, (22, 110), "collective_mismatch")


@pytest.mark.parametrize(
    ("ends", "culprits", "cause"),
    [
        ({0: 11, 4: 9}, (0,), "silent_death_segv"),  # the launcher kills who is left
        ({0: 11, 4: 11}, (), "crash_all_ranks"),
        ({0: 11, 4: 7}, (0, 4), "silent_death_segv"),
    ],
)
def test_ranks_that_a_launcher_lists_with_their_signals_died_of_those_that_are_their_own(
    ends: dict[int, int], culprits: tuple[int, ...], cause: str, tmp_path: Path
) -> None:
    lines = [f"rank {rank} died from signal {signal} and dumped core" for rank, signal in ends.items()]
    verdict = said(tmp_path, [*falling(1, 40), *lines])
    assert (*shape(verdict), verdict.culprits, verdict.cause) == (*CRASH, culprits, cause)


@pytest.mark.parametrize(
    ("how", "cause"),
    [("died with <Signals.SIGSEGV: 11>.", "silent_death_segv"), ("returned non-zero exit status 1.", "child_failed")],
)
def test_the_command_of_a_rank_that_failed_names_it(how: str, cause: str, tmp_path: Path) -> None:
    command = "Command '['/opt/bin/python3', '-u', 'fit.py', '--local_rank=7', '--lr', '0.4']' "
    verdict = said(tmp_path, [*falling(1, 40), f"subprocess.CalledProcessError: {command}{how}"])
    assert (*shape(verdict), verdict.culprits, verdict.cause) == (*CRASH, (7,), cause)


@pytest.mark.parametrize("code", [107_019, 107_020])
def test_a_task_on_an_npu_that_timed_out_is_a_hang(code: int, tmp_path: Path) -> None:
    line = f"RuntimeError: NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is {code}"
    assert shape(said(tmp_path, [*falling(1, 40), line])) == HANG


def test_another_error_code_of_an_npu_is_a_crash(tmp_path: Path) -> None:
    line = "RuntimeError: NPU function error: aclrtSetDevice, error code is 107001"
    assert shape(said(tmp_path, [*falling(1, 40), line])) == CRASH


OLD = "| WARNING: overflow detected, setting loss scale to: {scale}"
UPDATE = "| epoch 001: {at} / 2000 loss=9.1{digit}, ppl=480.1, num_updates={at}, lr=0.0001, gnorm=1.2, oom=0"


@pytest.mark.parametrize(("lowered", "collapsed"), [(18, True), (1, False)])
def test_a_storm_of_overflows_of_old_fairseq_is_a_collapse_of_the_scale(
    lowered: int, *, collapsed: bool, tmp_path: Path
) -> None:
    lines = [UPDATE.format(at=at, digit=at % 10) for at in range(1, 40)]
    lines += [OLD.format(scale=2.0 ** (7 - turn)) for turn in range(lowered)]
    if collapsed:
        lines.append("FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.")
    found = judged(tmp_path, {"train.log": lines})
    assert (found.verdict.cause == "loss_scale_collapse") is collapsed


@pytest.mark.parametrize(
    "line", [OLD, "| NOTICE: gradient overflow detected, ignoring gradient, setting loss scale to: {scale}"]
)
def test_an_overflow_of_fairseq_old_or_new_is_read_as_one(line: str, tmp_path: Path) -> None:
    lines = [*(UPDATE.format(at=at, digit=at % 10) for at in range(1, 40)), line.format(scale=64.0)]
    codes = open_run(write(tmp_path, {"train.log": lines})).events.collect()["code"].to_list()
    assert "fairseq.overflow" in codes


@pytest.mark.parametrize(
    "line",
    [
        "Memory access fault by GPU node-4 (Agent handle: 0x55d0) on address 0x7f8e4c000000. Reason: Page not present.",
        "HIP error: an illegal memory access was encountered",
    ],
)
def test_a_memory_fault_of_rocm_is_a_crash_with_its_cause(line: str, tmp_path: Path) -> None:
    verdict = said(tmp_path, [*falling(1, 40), line])
    assert (*shape(verdict), verdict.cause) == (*CRASH, "illegal_memory_access")


@pytest.mark.parametrize("peer", ["", " node2<43114>"])
def test_a_last_line_of_nccl_about_a_closed_connection_is_a_lost_peer(peer: str, tmp_path: Path) -> None:
    line = f"node1:123:456 [0] misc/socket.cc:510 NCCL WARN Net : Connection closed by remote peer{peer}"
    verdict = said(tmp_path, [*falling(1, 40), line])
    assert (verdict.outcome, verdict.cause) == (Outcome.FAILED, "peer_gone")
    assert said(tmp_path / "over", [*falling(1, 40), line, *falling(41, 90), DONE]).outcome is Outcome.HEALTHY


def test_a_closed_connection_of_its_own_service_thread_is_teardown(tmp_path: Path) -> None:
    line = "node1:123:456 [0] NCCL INFO [Service thread] Connection closed by localRank 1"
    assert said(tmp_path, [*falling(1, 40), line]).outcome is Outcome.CANNOT_SAY


@pytest.mark.parametrize("words", ["k-NN accuracy at epoch {at}: {score:.2f}", "Epoch {at}: knn acc@1: {score:.2f}"])
@pytest.mark.parametrize(("falls", "outcome"), [(4.0, Outcome.SUSPECT), (0.0, Outcome.HEALTHY)])
def test_an_accuracy_of_nearest_neighbours_is_an_evaluation(
    words: str, falls: float, outcome: Outcome, tmp_path: Path
) -> None:
    lines = [
        line
        for at in range(1, 31)
        for line in (
            f"epoch {at} loss {3 - at / 50:.4f}",
            words.format(at=at, score=30 + 3 * min(at, 15) - falls * max(0, at - 15)),
        )
    ]
    verdict = said(tmp_path, [*lines, DONE])
    assert (verdict.outcome, verdict.shape) == (outcome, Shape.BAD_EVAL if falls else None)
