"""Ranks of one job: whom the others wait for, by last words, by the stacks of an abort, and by the earliest error."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from forensics.knowledge.doing import by_frame
from forensics.model import Outcome, Shape
from tests.unit.truth._runs import TRACEBACK, Files, falling, judged, said, shape

LIMIT = ["slurmstepd: error: *** JOB 99120 ON x1 CANCELLED AT 2026-01-03T{at} DUE TO TIME LIMIT ***"]
HANG = (Outcome.FAILED, Shape.HANG)


def clocked(rank: int, last: str, until: int = 59) -> list[str]:
    """Records of one rank, one in a second from six o'clock on, and its last line."""
    lines = falling(1, until, "06:00:{at:02} [{rank}/4] step {at} loss {loss:.3f}".replace("{rank}", str(rank)))
    return [*lines, last] if last else lines


def waiting(ranks: Iterable[int], at: str = "17:41:12") -> Files:
    """Logs of four ranks, of which some say last that they wait, and the scheduler's."""
    words = {rank: f"06:01:00 [{rank}/4] step 60 waiting for the all-reduce" for rank in ranks}
    logs = {f"rank_{rank}.log": clocked(rank, words.get(rank, "")) for rank in range(4)}
    return {**logs, "slurm.out": [LIMIT[0].format(at=at)]}


def test_the_one_rank_that_does_not_say_that_it_waits_is_waited_for(tmp_path: Path) -> None:
    verdict = judged(tmp_path, waiting({0, 1, 3})).verdict
    assert (*shape(verdict), verdict.culprits, verdict.onset.rank) == (*HANG, (2,), 2)
    assert "700 minutes" in verdict.headline  # from one time of day to the other: the logs print no date


@pytest.mark.parametrize("ranks", [set[int](), {0, 1}, {0, 1, 2, 3}])
def test_nobody_is_waited_for_where_half_or_all_or_none_wait(ranks: set[int], tmp_path: Path) -> None:
    verdict = judged(tmp_path, waiting(ranks)).verdict
    assert (*shape(verdict), verdict.culprits) == (*HANG, ())


def test_a_stop_at_an_earlier_time_of_day_is_of_another_zone(tmp_path: Path) -> None:
    assert judged(tmp_path, waiting({0, 1, 3}, "02:20:00")).verdict.shape is not Shape.HANG


INSIDE = ("torch/distributed/distributed_c10d.py", 3252, "all_reduce"), ("train.py", 25, "<module>")
OUTSIDE = ("cache.py", 19, "statistics_of"), ("train.py", 24, "<module>")


def aborted(stack: Iterable[tuple[str, int, str]]) -> list[str]:
    """What faulthandler prints on SIGABRT."""
    frames = [f'  File "{file}", line {line} in {function}' for file, line, function in stack]
    other = ["Thread 0x00007f46637fe6c0 (most recent call first):", '  File "feed.py", line 13 in run', ""]
    return [
        "Fatal Python error: Aborted",
        "",
        *other,
        "Current thread 0x00007f46888aeb80 (most recent call first):",
        *frames,
    ]


def test_an_abort_of_all_ranks_shows_where_each_of_them_stood(tmp_path: Path) -> None:
    files = {f"rank_{rank}.log": [*falling(1, 40), *aborted(OUTSIDE if rank == 2 else INSIDE)] for rank in range(4)}
    verdict = judged(tmp_path, files).verdict
    assert (*shape(verdict), verdict.culprits, verdict.onset.step) == (*HANG, (2,), 40)


def test_an_abort_of_one_rank_is_its_own(tmp_path: Path) -> None:
    files = {f"rank_{rank}.log": [*falling(1, 40), *(aborted(OUTSIDE) if rank == 2 else ())] for rank in range(4)}
    assert judged(tmp_path, files).verdict.shape is Shape.CRASH


@pytest.mark.parametrize(("year", "cause"), [(2021, "gpu_fell_off_the_bus"), (2022, "native_check")])
def test_the_earliest_error_of_a_rank_is_the_one_that_ended_it(year: int, cause: str, tmp_path: Path) -> None:
    check = "2021-06-18 14:34:09.873402: F tensorflow/core/common_runtime/gpu/gpu_event_mgr.cc:220] Unexpected Event"
    stalled = "2021-06-18 14:35:10.224518: W horovod/common/stall_inspector.cc:105] Missing ranks:"
    died = "mpirun noticed that process rank 3 with PID 22817 on node v100-11 exited on signal 6 (Aborted)."
    told = "NVRM: Xid (PCI:0000:b3:00): 79, pid=22817, GPU has fallen off the bus."
    lines = [
        *("[1,0]<stdout>:" + line for line in falling(1, 40)),
        f"[1,0]<stderr>:{stalled}",
        f"[1,3]<stderr>:{check}",
    ]
    files = {"job.out": [*lines, died], "v100-11.dmesg": [f"[Fri Jun 18 14:34:09 {year}] {told}"]}
    verdict = judged(tmp_path, files).verdict
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.CRASH, (3,), cause)


@pytest.mark.parametrize(
    ("frame", "reads"),
    [
        ("_slice threading.py", False),
        ("already_seen batch.py", False),
        ("read_shard feed.py", True),
        ("pread io.py", True),
    ],
)
def test_the_word_read_within_another_one_is_no_reading(frame: str, *, reads: bool) -> None:
    assert (by_frame(frame) is not None) is reads


@pytest.mark.parametrize("code", [0, 3])
def test_an_exit_that_a_launcher_prints_with_a_sign_alone_is_read(code: int, tmp_path: Path) -> None:
    files = {"requeue.1.log": [*falling(1, 60), f"Nov 27 17:48:41 node07 launcher: attempt 3 exit={code}"]}
    verdict = judged(tmp_path, files).verdict
    assert verdict.outcome is (Outcome.FAILED if code else Outcome.HEALTHY)


WATCHDOG = (
    "[rank{0}]:[E1103 02:51:19.607 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=3097, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600012 milliseconds"
)


def tasks(said: Iterable[int], complain: Iterable[int]) -> list[str]:
    """A log of `srun -l`: a word of some tasks, records of task 0, and the complaints of others."""
    hello = [f"{task:2d}: model is built" for task in said]
    last = [f"{rank:2d}: " + WATCHDOG.format(rank) for rank in complain]
    return [*hello, *falling(1, 60, " 0: step {at} loss {loss:.3f}"), *last]


@pytest.mark.parametrize(
    ("said", "complain", "culprits"),
    [
        (range(6), (1, 0, 3, 2, 4), (5,)),  # no other line is of task 5
        (range(5), (1, 0, 3, 2, 4), ()),
        ((0, 1, 5, 40), (1, 0, 3, 2, 4), ()),  # most numbers up to 40 are missing: what is counted is no rank
        (range(5), (1, 0, 3, 2, 4, 6, 7), (5,)),  # of ranks that are counted through, 5 is one
    ],
)
def test_a_rank_that_only_printed_into_the_log_of_all_is_waited_for(
    said: Iterable[int], complain: Iterable[int], culprits: tuple[int, ...], tmp_path: Path
) -> None:
    verdict = judged(tmp_path, {"job.out": tasks(said, complain)}).verdict
    assert (*shape(verdict), verdict.culprits) == (*HANG, culprits)


@pytest.mark.parametrize(("enqueued", "ranks"), [(70, (2,)), (71, ())])
def test_the_rank_that_enqueued_less_is_waited_for_though_it_complains(
    enqueued: int, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    def state(rank: int, sent: int) -> str:
        words = (
            f"Received a dump signal due to a collective timeout from {'this local rank' if rank == 0 else 'rank 0'}"
        )
        told = f"Last enqueued NCCL work: {sent}, last completed NCCL work: 70."
        return f"[rank{rank}]:[E3 1] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] {words} and we dump. {told}"

    lines = [*falling(1, 40), *(state(rank, 71) for rank in (0, 1, 3)), state(2, enqueued)]
    assert said(tmp_path, lines).culprits == ranks


@pytest.mark.parametrize(("speakers", "ranks"), [((0, 1), (3,)), ((0,), ())])
def test_the_rank_that_all_who_speak_find_odd_is_odd(
    speakers: tuple[int, ...], ranks: tuple[int, ...], tmp_path: Path
) -> None:
    def run(op: str, shape: int) -> str:
        return f"CollectiveFingerPrint(SequenceNumber=4, OpType={op}, TensorShape=[{shape}], TensorDtypes=Float)"

    mine, odd = run("ALLREDUCE", 9), run("BROADCAST", 5)
    check = "RuntimeError: Detected mismatch between collectives on ranks."
    lines = [
        f"[rank{n}]: {check} Rank {n} is running collective: {mine}, but Rank 3 is running collective: {odd}."
        for n in speakers
    ]
    assert said(tmp_path, [*falling(1, 40), *lines]).culprits == ranks


@pytest.mark.parametrize(("words", "ranks"), [("Rank 5: ", (5,)), ("", ())])
def test_the_rank_in_the_words_of_a_nan_check_is_the_culprit(
    words: str, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    found = f"AssertionError: {words}found NaN in local grad norm in backward pass before data-parallel communication"
    assert said(tmp_path, [*falling(1, 40), *TRACEBACK, found]).culprits == ranks
