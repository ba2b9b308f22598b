"""Ranks: who speaks is read from every prefix, findings of one event are merged, and a culprit known is said."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import DONE, TRACEBACK, falling, judged, said, shape

HANG = (Outcome.FAILED, Shape.HANG)


@pytest.mark.parametrize(
    ("prefix", "rank"), [("node3: [rank20]: ", 20), ("[rank20]: ", 20), ("node3: ", None), ("matrix[rank20]: ", None)]
)
def test_the_rank_behind_the_host_of_a_launcher_is_the_speaker(prefix: str, rank: int | None, tmp_path: Path) -> None:
    lines = [*falling(1, 40), *TRACEBACK, "ValueError: bad shard"]
    verdict = said(tmp_path, [prefix + line for line in lines])
    assert verdict.culprits == (() if rank is None else (rank,))


@pytest.mark.parametrize(("code", "killed"), [(0, False), (1, False), (-9, True)])
def test_only_the_exit_code_of_a_kill_is_told_as_one(code: int, *, killed: bool, tmp_path: Path) -> None:
    said_by = f"E0501 10:00:00.1 47 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: {code}) "
    verdict = said(tmp_path, [*falling(1, 40), f"{said_by}local_rank: 3 (pid: 77) of binary: python"])
    assert ("SIGKILL" in verdict.headline) is killed


def test_a_rank_that_lost_a_worker_of_its_loader_crashed(tmp_path: Path) -> None:
    died = "RuntimeError: DataLoader worker (pid 31888) is killed by signal: Killed. "
    verdict = said(tmp_path, [*falling(1, 40), *("[rank1]: " + line for line in [*TRACEBACK, died])])
    assert (*shape(verdict), verdict.culprits) == (Outcome.FAILED, Shape.CRASH, (1,))


LOST = "slurmstepd: error: *** JOB 9 ON gpu17 CANCELLED AT 2031-05-06T07:08:09 DUE TO NODE FAILURE, SEE SLURMCTLD ***"


@pytest.mark.parametrize("lost_first", [True, False])
def test_a_task_that_is_killed_after_its_node_was_lost_is_no_culprit(lost_first: bool, tmp_path: Path) -> None:
    killed = "srun: error: gpu17: task 1: Killed"
    end = [LOST, killed] if lost_first else [killed, LOST]
    verdict = said(tmp_path, [*falling(1, 40), *end])
    assert ((verdict.cause, verdict.culprits) == ("node_failed", ())) is lost_first


@pytest.mark.parametrize("slow", [0, 1])
def test_one_of_two_ranks_can_be_the_straggler(slow: int, tmp_path: Path) -> None:
    rng = random.Random(5)

    def record(rank: int, at: int) -> str:
        late = 2.5 if at > 150 else 1.0
        own = (0.5 + 0.01 * rng.random()) * (late if rank == slow else 1)
        return json.dumps(
            {"step": at, "rank": rank, "loss": 3 - at / 250, "compute_time_s": own, "step_time_s": 0.5 * late}
        )

    files = {f"rank{rank}.jsonl": [record(rank, at) for at in range(300)] for rank in range(2)}
    verdict = judged(tmp_path, files).verdict
    # the finding that knows the rank and the one that knows the pace are one answer
    assert (verdict.shape, verdict.culprits, verdict.onset.step) == (Shape.SLOWDOWN, (slow,), 151)


def test_ranks_that_are_slow_together_have_no_straggler(tmp_path: Path) -> None:
    files = {
        f"rank{rank}.jsonl": [
            json.dumps({"step": at, "rank": rank, "loss": 3 - at / 250, "compute_time_s": 0.5 if at <= 150 else 1.25})
            for at in range(300)
        ]
        for rank in range(2)
    }
    assert judged(tmp_path, files).verdict.culprits == ()


@pytest.mark.parametrize(
    ("slow", "ranks", "culprits"),
    [({2}, 4, (2,)), ({2}, 3, (2,)), ({1}, 2, ()), ({1, 2}, 4, ()), ({0, 1, 2}, 3, ())],
    ids=["one of four", "one of three", "one of two", "two of four", "all"],
)
def test_the_one_rank_of_several_whose_own_steps_became_slow_is_the_culprit(
    slow: set[int], ranks: int, culprits: tuple[int, ...], tmp_path: Path
) -> None:
    rng = random.Random(6)
    files = {
        f"rank{rank}.log": [
            f"[rank{rank}] step {at} loss {3 - at / 250:.4f}"
            f" step_time {(1.1 if rank in slow and at > 60 else 0.5) + rng.gauss(0, 0.005):.4f}"
            for at in range(1, 161)
        ]
        for rank in range(ranks)
    }
    verdict = judged(tmp_path, files).verdict
    assert (verdict.shape, verdict.onset.step, verdict.culprits) == (Shape.SLOWDOWN, 61, culprits)


def aborted(call: str) -> list[str]:
    return [
        *falling(1, 40),
        "Traceback (most recent call last):",
        '  File "train.py", line 9, in step',
        f"    dist.{call}()",
        f'  File "/x/torch/distributed/distributed_c10d.py", line 4159, in {call}',
        "    work.wait()",
        "torch.distributed.DistBackendError: NCCL communicator was aborted",
    ]


@pytest.mark.parametrize(("odd", "culprits"), [("barrier", (0,)), ("all_reduce", ())])
def test_tracebacks_count_as_stacks(odd: str, culprits: tuple[int, ...], tmp_path: Path) -> None:
    files = {f"rank{rank}.log": aborted("all_reduce" if rank else odd) for rank in range(4)}
    assert judged(tmp_path, files).verdict.culprits == culprits


def watchdog(rank: int) -> str:
    return (
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=401, OpType=BARRIER, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600021 milliseconds "
        "before timing out."
    )


def finished(waiting: Iterable[int], end: str = DONE) -> Mapping[str, list[str]]:
    return {
        f"rank{rank}.log": [*falling(1, 100), end, *([watchdog(rank)] if rank in waiting else [])] for rank in range(4)
    }


def test_a_shutdown_deadlock_names_its_culprit(tmp_path: Path) -> None:
    verdict = judged(tmp_path, finished({0, 1, 3})).verdict
    assert (*shape(verdict), verdict.cause, verdict.culprits) == (*HANG, "shutdown_hang", (2,))


@pytest.mark.parametrize("waiting", [{0, 1, 2, 3}, {0, 1}])
def test_a_shutdown_deadlock_of_all_or_of_half_names_nobody(waiting: set[int], tmp_path: Path) -> None:
    verdict = judged(tmp_path, finished(waiting)).verdict
    assert (*shape(verdict), verdict.cause, verdict.culprits) == (*HANG, "shutdown_hang", ())


def test_a_shutdown_without_a_watchdog_is_none(tmp_path: Path) -> None:
    assert judged(tmp_path, finished(())).verdict.outcome is Outcome.HEALTHY


def test_the_watchdogs_of_one_timeout_are_one_event(tmp_path: Path) -> None:
    found = judged(tmp_path, finished({0, 1, 3}, end="saving"))
    errors = [one for one in found.findings if one.severity.rank > 1]
    assert (shape(found.verdict), found.verdict.culprits, found.verdict.runner_up) == (HANG, (2,), None)
    assert {one.shape for one in errors} == {Shape.HANG}


@pytest.mark.parametrize(("others", "culprits"), [(52, (2,)), (51, ())])
def test_the_rank_whose_loss_was_lost_first_is_the_culprit_of_the_run_and_of_several_none_is(
    others: int, culprits: tuple[int, ...], tmp_path: Path
) -> None:
    begins = {rank: 51 if rank == 2 else others for rank in range(4)}
    lost = {rank: [f"step {at} | loss: nan" for at in range(at, 80)] for rank, at in begins.items()}
    verdict = judged(
        tmp_path, {f"rank{rank}.log": [*falling(1, begins[rank] - 1), *lost[rank]] for rank in lost}
    ).verdict
    assert (*shape(verdict), verdict.onset.step, verdict.culprits) == (Outcome.FAILED, Shape.NAN, 51, culprits)


def test_ranks_that_run_out_of_memory_together_are_all_named_and_a_later_one_is_not(tmp_path: Path) -> None:
    out = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    dead, alive = [*falling(1, 40), *TRACEBACK, out], falling(1, 40)
    together = {f"rank{rank}.log": dead if rank < 7 else alive for rank in range(8)}
    assert judged(tmp_path / "together", together).verdict.culprits == tuple(range(7))
    times = {rank: "2026-05-01 10:00:01,000 " if rank == 1 else "2026-05-01 10:00:09,000 " for rank in range(4)}
    ordered = {f"rank{rank}.log": [times[rank] + line for line in dead] for rank in range(4)}
    assert judged(tmp_path / "ordered", ordered).verdict.culprits == (1,)


@pytest.mark.parametrize(
    ("agent", "shape"),
    [
        ("Sending process 11 closing signal SIGTERM", Shape.CRASH),
        ("Sending process 12 closing signal SIGTERM", Shape.STOPPED),  # nobody ended by itself
        ("Received 15 death signal, shutting down workers\nSending process 11 closing signal SIGTERM", Shape.STOPPED),
    ],
)
def test_a_signal_that_the_launcher_sent_after_another_rank_had_died_stops_no_run(
    tmp_path: Path, agent: str, shape: Shape
) -> None:
    records = [f"step {at} loss {3 - at / 100:.2f}" for at in range(1, 40)]
    died = "torch.distributed.elastic.multiprocessing.api: failed (exitcode: 1) local_rank: 1 (pid: 12) of binary: py"
    files = {
        "rank0.log": [*records, "[rank: 0] Received SIGTERM: 15"],
        "rank1.log": records,
        "torchrun.log": [*agent.split("\n"), died],
    }
    assert judged(tmp_path, files).verdict.shape is shape


def test_the_rank_that_died_by_itself_is_whom_its_peer_misses(tmp_path: Path) -> None:
    records = [f"step {at} loss {3 - at / 100:.2f}" for at in range(1, 40)]
    reset = "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:5518: Connection reset by peer"
    files = {
        "rank0.log": [*records, "[rank: 0] Received SIGTERM: 15", *TRACEBACK, reset],
        "rank1.log": records,
        "torchrun.log": [
            "torch.distributed.elastic.multiprocessing.api: Sending process 11 closing signal SIGTERM",
            "torch.distributed.elastic.multiprocessing.api: failed (exitcode: -6) local_rank: 1 (pid: 12)",
        ],
    }
    verdict = judged(tmp_path, files).verdict
    assert (verdict.shape, verdict.culprits, verdict.onset.rank) == (Shape.CRASH, (1,), 1)


@pytest.mark.parametrize(("minute", "stopped"), [(1, True), (59, False)])
def test_a_rank_that_was_asked_to_end_before_it_was_missed_is_a_stop_of_that_rank(
    minute: int, *, stopped: bool, tmp_path: Path
) -> None:
    steps = [f"2031-05-06 10:00:{s:02} step {s} loss {3 - s / 50:.4f}" for s in range(40)]
    lost = "2031-05-06 10:30:0{} Terminating: the JAX distributed service detected fatal errors"
    logs = {f"rank_{r}.log": [*steps, lost.format(r)] for r in (0, 2)}
    logs["rank_1.log"] = [*steps, f"2031-05-06 10:{minute:02}:00 Received SIGTERM - stopping after this step"]
    verdict = judged(tmp_path, logs).verdict
    assert ((verdict.shape, verdict.culprits) == (Shape.STOPPED, (1,))) is stopped
    assert verdict.culprits == (1,)
