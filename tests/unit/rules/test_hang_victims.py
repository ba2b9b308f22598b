"""Without dumps a rank that says that it waits is a victim, and only a rank that says nothing can be named."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Outcome, Report, Shape

WAITS = (
    "[rank{r}]:[E101 02:03:0{r}.500000000 ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=71, OpType=ALLREDUCE, NumelIn=640, NumelOut=640, Timeout(ms)=90000) ran for 90012 "
    "milliseconds before timing out."
)
CUT = WAITS[: WAITS.index("NumelOut")]
STATUS = (
    "[rank{r}]:[E101 02:03:0{r}.600000000 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {r}] "
    "Exception (either an error or timeout) detected by watchdog at work: 71, last enqueued NCCL work: 73, last "
    "completed NCCL work: 70."
)
OLD = (
    "[rank{r}]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank {r}] Timeout at NCCL work: 71, last enqueued NCCL work: 71, "
    "last completed NCCL work: 70."
)
TOLD = (
    "[rank{r}]:[E101 02:03:0{r}.700000000 ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank {r}] "
    "Received a dump signal due to a collective timeout from  rank 3 and we will try our best to dump the debug info. "
    "Last enqueued NCCL work: 71, last completed NCCL work: 71."
)


def judged(folder: Path, *lines: str) -> Report:
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return triage(folder)


def test_a_rank_whose_watchdog_reports_the_same_collective_is_no_culprit(tmp_path: Path) -> None:
    lines = (WAITS.format(r=0), STATUS.format(r=0), WAITS.format(r=1), STATUS.format(r=1), WAITS.format(r=2))
    verdict = judged(tmp_path, *lines).verdict
    assert (verdict.outcome, verdict.shape, verdict.culprits) == (Outcome.FAILED, Shape.HANG, ())


def test_a_complaint_that_was_cut_off_is_a_complaint_all_the_same(tmp_path: Path) -> None:
    lines = (WAITS.format(r=0), STATUS.format(r=0), WAITS.format(r=1), STATUS.format(r=1), CUT.format(r=2))
    assert judged(tmp_path, *lines).verdict.culprits == ()


@pytest.mark.parametrize("ranks", [(1, 2), (0, 1, 2, 6), (1, 2, 3), (0, 1, 3), (0, 1, 2)])
def test_a_number_that_no_line_carries_names_nobody(tmp_path: Path, ranks: tuple[int, ...]) -> None:
    verdict = judged(tmp_path, *(OLD.format(r=r) for r in ranks)).verdict
    assert (verdict.shape, verdict.culprits) == (Shape.HANG, ())


def test_a_rank_that_had_spoken_before_and_does_not_complain_is_named(tmp_path: Path) -> None:
    trained = [f"[rank{r}]: step {step} loss: {3 - step / 10}" for step in (1, 2, 3) for r in range(4)]
    lines = (*trained, *(OLD.format(r=r) for r in (0, 1, 3)))
    verdict = judged(tmp_path, *lines).verdict
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.HANG, (2,), "never_entered")


def test_being_asked_for_a_dump_is_a_hang_of_the_job_and_no_complaint_of_the_rank(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *(TOLD.format(r=r) for r in (0, 1, 2))).verdict
    assert (verdict.outcome, verdict.shape, verdict.culprits) == (Outcome.FAILED, Shape.HANG, ())


def test_horovods_missing_ranks_are_named(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path,
        "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting "
        "for remainder of ranks for more than 75 seconds.",
        "Stalled ops:grads.block3.bias_0 [missing ranks: 2, 5]",
    ).verdict
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.HANG, (2, 5), "never_entered")


def test_a_monitored_barrier_names_ranks_that_left_no_line(tmp_path: Path) -> None:
    words = "RuntimeError: [Rank 0]: Ranks 3, 4, 5 failed to pass monitoredBarrier in 7000 ms"
    verdict = judged(
        tmp_path, "Traceback (most recent call last):", '  File "run.py", line 8, in <module>', "    main()", words
    ).verdict
    assert (verdict.shape, verdict.culprits) == (Shape.HANG, (3, 4, 5))


def test_the_tasks_that_jax_lists_below_a_barrier_did_not_come(tmp_path: Path) -> None:
    words = "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Timed out task names:"
    tasks = [f"/job:jax_worker/replica:0/task:{task}" for task in (5, 2)]
    verdict = judged(tmp_path, words, *tasks, "a name behind them").verdict
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.HANG, (2, 5), "never_entered")


@pytest.mark.parametrize(
    ("last", "told"),
    [("Terminated", (Shape.STOPPED, (2,), "external_termination")), ("", (Shape.CRASH, (2,), "silent_death_sigkill"))],
    ids=["stopped", "silent"],
)
def test_a_task_that_sends_no_signs_of_life_was_stopped_where_its_log_says_so(
    last: str, told: tuple[Shape, tuple[int, ...], str], tmp_path: Path
) -> None:
    lost = (
        "Terminating process because the JAX distributed service detected fatal errors. UNAVAILABLE: The following"
        " tasks are unhealthy (stopped sending heartbeats):\n/job:jax_worker/replica:0/task:2\n"
    )
    for rank in range(4):
        steps = "".join(f"completed step: {n}, seconds: 3.412, loss: {2 + 3 / (n + 1):.3f}\n" for n in range(30))
        (tmp_path / f"worker-{rank}.log").write_text(steps + (f"{last}\n" if rank == 2 else lost))
    verdict = triage(tmp_path).verdict
    assert (verdict.shape, verdict.culprits, verdict.cause) == told


STUCK = (
    "2026-01-02 03:04:05.6: E external/xla/xla/service/rendezvous.cc:38] This thread has been waiting for `initialize "
    "clique for rank 3` for 20 seconds and may be stuck. Expected 4 threads to join the rendezvous."
)
FREED = (
    "2026-01-02 03:04:35.6: E external/xla/xla/service/rendezvous.cc:43] Thread is unstuck! Warning above was a "
    "false-positive. Perhaps the timeout is too short."
)


def test_threads_that_wait_at_a_rendezvous_to_the_end_are_a_hang(tmp_path: Path) -> None:
    assert judged(tmp_path, FREED, STUCK).verdict.shape is Shape.HANG


def test_a_rendezvous_that_came_together_late_is_none(tmp_path: Path) -> None:
    assert judged(tmp_path, STUCK, FREED).verdict.outcome is Outcome.CANNOT_SAY


def test_an_error_code_below_an_exception_says_what_the_exception_was(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path,
        "[rank4]: Traceback (most recent call last):",
        '[rank4]:   File "/opt/train/run.py", line 12, in <module>',
        "[rank4]:     dist.all_reduce(total)",
        "[rank4]: RuntimeError: OPS function error: HcclAllreduce, error code is 6",
        "[rank4]: [ERROR] 2026-01-02-03:04:05 (PID:77, Device:4, RankID:4) ERR01100 OPS call acl api failed.",
        "[rank4]: EI0006: [PID: 77] 2026-01-02-03:04:05.100.200 Getting socket times out. Reason: Remote Rank did not "
        "send the data in time.",
    ).verdict
    assert (verdict.outcome, verdict.shape) == (Outcome.FAILED, Shape.HANG)


BARRIER = (
    "I0102 03:04:{s}.250000 7011 distributed_c10d.py:337] Waiting in store based barrier to initialize process group "
    "for rank: {r}, key: store_based_barrier_key:2 (world_size=4, worker_count=3, timeout=0:20:00)"
)


def test_ranks_that_wait_in_the_store_s_barrier_to_the_end_of_the_log_hang_at_the_start(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *(BARRIER.format(s=s, r=r) for s in (10, 20) for r in (1, 2))).verdict
    assert (verdict.outcome, verdict.shape, verdict.cause) == (Outcome.FAILED, Shape.HANG, "init_hang")


def test_a_slow_start_is_no_hang(tmp_path: Path) -> None:
    steps = [f"step {s} | loss {2 + 3 / s:.4f} | grad_norm 0.75" for s in range(1, 30)]
    waits = [BARRIER.format(s=s, r=r) for s in (10, 20) for r in (1, 2)]
    assert judged(tmp_path, *waits, *steps, "training finished").verdict.outcome is Outcome.HEALTHY
    assert judged(tmp_path, *waits, *(["loading the tokenizer"] * 20)).verdict.outcome is Outcome.CANNOT_SAY


EXITED = (
    "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank: 0 (pid: 4120) of binary: py"
)


def test_an_abort_below_the_time_out_of_a_rank_that_nothing_names_is_its_watchdog_s(tmp_path: Path) -> None:
    unnamed = WAITS.format(r=0).removeprefix("[rank0]:").replace("[Rank 0] ", "")
    verdict = judged(tmp_path, unnamed, EXITED).verdict
    assert (verdict.shape, verdict.cause) == (Shape.HANG, "collective_timeout")


def test_an_abort_above_the_time_out_of_its_log_is_a_death_of_its_own(tmp_path: Path) -> None:
    unnamed = WAITS.format(r=0).removeprefix("[rank0]:").replace("[Rank 0] ", "")
    verdict = judged(tmp_path, EXITED, unnamed).verdict
    assert (verdict.shape, verdict.cause) == (Shape.CRASH, "silent_death_signal")


def test_a_kernel_s_failed_check_on_one_rank_is_a_crash_and_no_hang(tmp_path: Path) -> None:
    lines = (
        "[rank2]: torch.AcceleratorError: CUDA error: device-side assert triggered",
        "[rank0]: Traceback (most recent call last):",
        '[rank0]:   File "pretrain.py", line 7, in <module>',
    )
    verdict = judged(tmp_path, *lines).verdict
    assert (verdict.shape, verdict.cause, verdict.culprits) == (Shape.CRASH, "device_assert", (2,))


def stated(*complaining: int) -> list[str]:
    return ["INFO distributed: world_size=4", *(f"step {n} | loss {3 - n / 90:.4f}" for n in range(1, 60))] + [
        WAITS.format(r=rank) for rank in complaining
    ]


@pytest.mark.parametrize(
    ("complaining", "culprits"), [((0, 1, 2), (3,)), ((1, 2, 3), (0,)), ((0, 1), ()), ((2, 3), ())]
)
def test_a_stated_world_names_a_rank_only_where_all_others_are_heard_of(
    tmp_path: Path, complaining: tuple[int, ...], culprits: tuple[int, ...]
) -> None:
    verdict = judged(tmp_path, *stated(*complaining)).verdict
    assert (verdict.shape, verdict.culprits) == (Shape.HANG, culprits)


_MISSING = "Missing ranks:\n3: [DistributedAdam_Allreduce/HorovodAllreduce_grads_0]\n"
_STALL = (
    "[1,0]<stderr>:[2031-05-06 07:08:09.1: W stall_inspector.cc:107] One or more tensors were submitted to"
    " be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60"
    " seconds. This may indicate that different ranks are trying to submit different tensors.\n"
)
_GONE, _BACK = "kernel: nfs: server stor2 not responding, still trying\n", "kernel: nfs: server stor2 OK\n"


@pytest.mark.parametrize(
    ("host", "cause"),
    [(_GONE, "slow_storage_read"), (_GONE + _BACK, "never_entered"), ("", "never_entered")],
    ids=["gone", "back", "not told"],
)
def test_why_a_rank_did_not_come_is_the_one_fault_that_a_host_tells(host: str, cause: str, tmp_path: Path) -> None:
    steps = "".join(f"[1,0]<stdout>:step {n} | loss {2 + 3 / n:.4f}\n" for n in range(1, 40))
    stall = _STALL + "".join(f"[1,0]<stderr>:{line}\n" for line in _MISSING.splitlines())
    (tmp_path / "mpirun.log").write_text(steps + stall)
    if host:
        (tmp_path / "node7.txt").write_text(host)
    verdict = triage(tmp_path).verdict
    assert (verdict.culprits, verdict.cause) == ((3,), cause)


@pytest.mark.parametrize(("of", "cause"), [(2, "slow_storage_read"), (1, "never_entered")], ids=["its own", "another"])
def test_the_only_stack_counts_where_it_is_of_the_rank_for_which_the_others_wait(
    of: int, cause: str, tmp_path: Path
) -> None:
    for rank in (0, 1, 3):
        said = (WAITS + "\n" + STATUS).format(r=rank)
        (tmp_path / f"rank{rank}.log").write_text(f"step 70 loss 2.0\nstep 71 loss 2.1\n{said}\n")
    (tmp_path / "rank2.log").write_text("step 70 loss 2.0\n")
    stack = 'Process 51: python train.py\nPython v3.11.9\n\nThread 51 (idle): "MainThread"\n'
    frames = "    read (fsspec/local.py:422)\n    __getitem__ (data.py:108)\n    main (train.py:40)\n"
    (tmp_path / f"pyspy_rank{of}.txt").write_text(stack + frames)
    verdict = triage(tmp_path).verdict
    assert (verdict.culprits, verdict.cause) == ((2,), cause)


@pytest.mark.parametrize(
    ("op", "seq", "told"),
    [
        ("BROADCAST", 71, ((2,), "collective_mismatch_op")),
        ("ALLREDUCE", 71, ((), "collective_timeout")),
        ("BROADCAST", 70, ((2,), "never_entered")),
    ],
    ids=["another operation", "the same", "another number"],
)
def test_watchdogs_of_one_number_that_name_two_operations_tell_the_odd_rank(
    op: str, seq: int, told: tuple[tuple[int, ...], str], tmp_path: Path
) -> None:
    for rank in range(4):
        said = WAITS.format(r=rank)
        if rank == 2:
            said = said.replace("ALLREDUCE", op).replace("SeqNum=71", f"SeqNum={seq}")
        (tmp_path / f"rank{rank}.log").write_text(f"step 70 loss 2.0\nstep 71 loss 2.1\n{said}\n")
    verdict = triage(tmp_path).verdict
    assert (verdict.culprits, verdict.cause) == told
