"""Ranks that only a pod, a word in an error, a peer or the end of the records names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.truth._runs import TRACEBACK, falling, judged, said

TIMED = "2026-11-20 02:{minute:02d}:{second:02d} INFO iter={at} loss={loss:.4f} time=2.00"
STOP = "slurmstepd: error: *** JOB 99812 ON gpu-a07 CANCELLED AT 2026-11-20T04:30:00 DUE TO TIME LIMIT ***"
REMOTE = "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"
EVICTED = "3m12s  Warning  Evicted  pod/{pod}  The node was low on resource: memory. Container trainer was using 212Gi."
HALTED = "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Accelerator device halted prematurely"
UNHEALTHY = (
    "XlaRuntimeError: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):",
    "/job:jax_worker/replica:0/task:2",
)


def timed(last: int) -> list[str]:
    lines = falling(1, last)
    return [
        TIMED.format(at=at, loss=float(line.rpartition(" ")[2]), minute=at * 2 // 60, second=at * 2 % 60)
        for at, line in enumerate(lines, 1)
    ]


@pytest.mark.parametrize(
    ("last", "behind", "every", "culprits"),
    [
        (197, (3,), 1, (3,)),
        (200, (3,), 1, ()),
        (197, (2, 3), 1, (2, 3)),
        (197, (2, 3, 4), 1, ()),  # as many as the others
        (195, (3,), 10, ()),  # its next record was not due
        (190, (3,), 10, (3,)),
    ],
)
def test_the_rank_whose_records_end_first_is_named_of_a_job_that_stood_still(
    last: int, behind: tuple[int, ...], every: int, culprits: tuple[int, ...], tmp_path: Path
) -> None:
    logs = {
        f"logs/worker_{rank}.log": [line for at, line in enumerate(timed(end), 1) if at % every == end % every]
        for rank, end in ((rank, last if rank in behind else 200) for rank in range(6))
    }
    verdict = judged(tmp_path, {**logs, "slurm-99812.out": [STOP]}).verdict
    assert (verdict.cause, verdict.culprits) == ("silent_stall", culprits)


@pytest.mark.parametrize(("pod", "culprits"), [("trainer-2", (2,)), ("loader-2", ())])
def test_a_pod_that_was_put_out_is_the_rank_of_its_log(pod: str, culprits: tuple[int, ...], tmp_path: Path) -> None:
    gone = [*TRACEBACK, REMOTE]
    logs = {f"trainer-{rank}.log": [*falling(1, 90), *(gone if rank != 2 else ())] for rank in range(4)}
    verdict = judged(tmp_path, {**logs, "events.txt": [EVICTED.format(pod=pod)]}).verdict
    assert (verdict.cause, verdict.culprits) == ("host_out_of_memory", culprits)


@pytest.mark.parametrize(("also", "culprits"), [((), (2,)), (UNHEALTHY, ())])
def test_an_error_of_no_rank_is_of_the_one_that_all_others_miss(
    also: tuple[str, ...], culprits: tuple[int, ...], tmp_path: Path
) -> None:
    logs = {f"host_{host}/train.log": [*falling(1, 90), *UNHEALTHY] for host in (0, 1, 3)}
    halted = [*falling(1, 90), *also, *TRACEBACK, HALTED]
    verdict = judged(tmp_path, {**logs, "host_2/train.log": halted}).verdict
    assert verdict.cause == "uncaught_exception"
    assert verdict.culprits == culprits


@pytest.mark.parametrize(
    ("words", "culprits"),
    [
        ("empty mask in sample 88123 (world rank 5)", (5,)),
        ("the batch is empty [rank 3]", (3,)),
        ("shard 12 is missing on rank 7: stop", (7,)),
        ("ranks differ: (rank 1) and (rank 2)", ()),
        ("expected a tensor of rank 4", ()),
        ("cannot broadcast on rank 3 tensors", ()),
        ("no file for local rank 2", ()),
        ("NCCL error: remote process exited or there was a network error (rank 5)", ()),
    ],
)
def test_an_exception_names_its_rank_by_its_words(words: str, culprits: tuple[int, ...], tmp_path: Path) -> None:
    assert said(tmp_path, [*falling(1, 60), *TRACEBACK, f"ValueError: {words}"]).culprits == culprits


@pytest.mark.parametrize(("name", "culprits"), [("out.{}", (2,)), ("out_{}.log", ())])
def test_the_ending_of_a_task_s_output_is_its_rank(name: str, culprits: tuple[int, ...], tmp_path: Path) -> None:
    files = {
        name.format(rank): [*falling(1, 60), *((*TRACEBACK, "KeyError: 'a'") if rank == 2 else ())] for rank in range(4)
    }
    assert judged(tmp_path, files).verdict.culprits == culprits


LATE = (
    "[rank{rank}]:[E1120 02:24:00.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=644, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600012 ms"
)
ABORTED = (
    "Fatal Python error: Aborted",
    "",
    "Current thread 0x00007f33 (most recent call first):",
    '  File "a.py", line 1 in f',
)


@pytest.mark.parametrize(("others", "cause"), [(LATE, "never_entered"), (f"[rank{{rank}}]: {REMOTE}", "aborted")])
def test_a_rank_that_was_waited_for_until_the_time_out_did_not_die_first(
    others: str, cause: str, tmp_path: Path
) -> None:
    ends = {rank: ABORTED if rank == 3 else (others.format(rank=rank),) for rank in range(4)}
    logs = {
        f"logs/r{rank}.log": [*falling(1, 90, f"02:11:01 rank{rank} | it {{at}} | loss {{loss:.4f}}"), *end]
        for rank, end in ends.items()
    }
    verdict = judged(tmp_path, logs).verdict
    assert (verdict.cause, verdict.culprits) == (cause, (3,))
