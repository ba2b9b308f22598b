"""torchrun starts a failed group anew: the first worker that failed is the origin, what later groups say follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from forensics import model, triage
from forensics.case.errors.exits import cause_of
from forensics.case.errors.launchers import GroupEnd, last_end
from forensics.model import Outcome, Report, Shape
from forensics.pipeline import ingest_bytes, report_of
from forensics.store.run import Run

Says = Callable[[int], Sequence[str]]
API = "torch/distributed/elastic/multiprocessing/api.py"
HELP = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
RESTARTS = "[default] Worker group FAILED. 1/2 attempts left; will restart worker group"


def steps(first: int, last: int) -> Iterator[str]:
    return (f"step {s} | loss {2 + 3 / (s + 1):.4f} | grad_norm {0.7 + 0.01 * (s % 9):.3f}" for s in range(first, last))


def failed(code: int, local_rank: int, pid: int, clock: str = "04:11:02.125000") -> str:
    words = f"failed (exitcode: {code}) local_rank: {local_rank} (pid: {pid}) of binary: /env/bin/python3"
    return f"E0309 {clock} 5501 {API}:869] {words}"


def restarted(clock: str = "04:11:03.250000") -> str:
    return f"I0309 {clock} 5501 torch/distributed/elastic/agent/server/api.py:926] {RESTARTS}"


def waits_for_store(rank: int) -> Sequence[str]:
    return (
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "/app/fit.py", line 21, in <module>',
        f'[rank{rank}]:     dist.init_process_group("nccl")',
        f"[rank{rank}]: torch.distributed.DistStoreError: wait timeout after 90000ms, keys: /default_pg/0//cuda//0/0",
    )


def cannot_connect(rank: int) -> Sequence[str]:
    said = "The client socket has timed out after 45000ms while trying to connect to (10.9.8.7, 29444)."
    return (*waits_for_store(rank)[:3], f"[rank{rank}]: torch.distributed.DistNetworkError: {said}")


def no_rendezvous(rank: int) -> Sequence[str]:
    frame = '  File "/env/lib/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py", line 640, in run'
    error = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"
    return () if rank else ("Traceback (most recent call last):", frame, "    raise RendezvousTimeoutError()", error)


def block(number: int, rank: int, code: int, pid: int) -> Sequence[str]:
    return (
        f"[{number}]:",
        "  time      : 2029-03-09_04:13:20",
        "  host      : box1",
        f"  rank      : {rank} (local_rank: {rank})",
        f"  exitcode  : {code} (pid: {pid})",
        "  error_file: <N/A>",
        f"  traceback : {HELP}",
    )


def table(first: tuple[int, int, int], *others: tuple[int, int, int]) -> Sequence[str]:
    rows = [line for i, other in enumerate(others, 1) for line in block(i, *other)]
    root = ("-" * 60, "Root Cause (first observed failure):", *block(0, *first), "=" * 60)
    return ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "=" * 60, "Failures:", *rows, *root)


def log(*parts: str | Sequence[str] | Iterator[str]) -> Run:
    lines = [line for part in parts for line in ([part] if isinstance(part, str) else part)]
    return ingest_bytes("train.log", ("\n".join(lines) + "\n").encode())


def judged(*parts: str | Sequence[str] | Iterator[str]) -> Report:
    return report_of(log(*parts))


def place(report: Report, rule: str) -> str:
    return next(f.evidence[0].place for f in report.findings if f.rule == rule)


@pytest.mark.parametrize("said", [waits_for_store, cannot_connect, no_rendezvous], ids=lambda f: f.__name__)
@pytest.mark.parametrize("says_restart", [True, False])
def test_the_first_failed_worker_is_the_origin_of_what_later_groups_wait_for(said: Says, *, says_restart: bool) -> None:
    again = [restarted()] if says_restart else []
    ends = [failed(1, 1, 733, "04:13:19.500000"), *table((1, 1, 733), (3, 1, 735))]
    report = judged(steps(0, 40), failed(3, 2, 714), again, said(1), said(3), ends)
    verdict = report.verdict
    assert (verdict.outcome, verdict.shape, verdict.culprits) == (Outcome.FAILED, Shape.CRASH, (2,))
    assert (verdict.cause, verdict.onset.step) == ("exit_nonzero", 39)
    assert "exit code 3" in verdict.headline
    assert "train.log:41" in verdict.headline
    assert "first attempt" in next(f.title for f in report.findings if f.rule == "CRH004")


def test_what_follows_is_told_as_consequence() -> None:
    verdict = judged(steps(0, 40), failed(3, 2, 714), waits_for_store(1), waits_for_store(3), failed(1, 1, 733)).verdict
    assert any("timed out waiting" in link for link in verdict.chain[1:])


def test_an_attempt_that_trained_is_over_and_the_next_one_counts() -> None:
    run = log(steps(0, 40), failed(3, 2, 714), steps(30, 60), failed(4, 0, 721), waits_for_store(1), waits_for_store(3))
    end = last_end(run)
    assert end is not None
    assert (end.code, end.rank, end.attempt) == (4, 0, 1)
    verdict = report_of(run).verdict
    assert (verdict.shape, verdict.culprits, verdict.onset.step) == (Shape.CRASH, (0,), 59)


def test_a_restart_that_trains_to_a_good_end_is_healthy() -> None:
    report = judged(steps(0, 40), failed(3, 2, 714), restarted(), steps(30, 120), "Training finished.")
    assert report.verdict.outcome is Outcome.HEALTHY


def test_an_exception_before_the_exit_says_more_than_its_code() -> None:
    words = ("Traceback (most recent call last):", '  File "/app/fit.py", line 88, in <module>', "    step(batch)")
    raised = [f"[rank2]: {line}" for line in (*words, "IndexError: row 77 is out of range")]
    later = (restarted(), *waits_for_store(1), *waits_for_store(3), failed(1, 1, 733))
    verdict = judged(steps(0, 40), raised, failed(1, 2, 714), later).verdict
    assert (verdict.shape, verdict.culprits, verdict.onset.step) == (Shape.CRASH, (2,), 39)
    assert "IndexError" in verdict.headline


@pytest.mark.parametrize(("code", "words"), [(1, "KeyError"), (3, "exit code 3")])
def test_a_later_exception_explains_code_1_and_no_code_of_the_program_s_choice(code: int, words: str) -> None:
    raised = ("Traceback (most recent call last):", '  File "/app/fit.py", line 9, in <module>', "    main()")
    verdict = judged(steps(0, 40), failed(code, 2, 714), restarted(), *raised, "KeyError: 'width'").verdict
    assert words in verdict.headline


def test_a_stop_that_is_told_after_the_exit_may_have_caused_it() -> None:
    stop = "slurmstepd: error: *** JOB 551 ON n7 CANCELLED AT 2029-03-09T04:11:00 DUE TO PREEMPTION ***"
    assert judged(steps(0, 40), failed(3, 2, 714), stop).verdict.shape is Shape.STOPPED


def test_a_single_group_needs_no_restart_to_be_told() -> None:
    verdict = judged(steps(0, 40), failed(7, 2, 714)).verdict
    assert (verdict.outcome, verdict.shape, verdict.culprits) == (Outcome.FAILED, Shape.CRASH, (2,))
    verdict = judged(steps(0, 40), table((2, 7, 714))).verdict
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.CRASH, (2,), "exit_nonzero")


def test_workers_that_end_alike_with_code_1_name_nobody() -> None:
    ends = (failed(1, 0, 711), *table((0, 1, 711), (1, 1, 712), (2, 1, 713)))
    verdict = judged(steps(0, 40), ends).verdict
    assert (verdict.outcome, verdict.shape, verdict.culprits) == (Outcome.FAILED, Shape.CRASH, ())


@pytest.mark.parametrize("code", [-9, 137])
def test_a_kill_stays_one_whose_sender_is_unknown(code: int) -> None:
    later = (*waits_for_store(1), *waits_for_store(3), failed(1, 1, 733))
    report = judged(steps(0, 40), failed(code, 2, 714), restarted(), later)
    assert (report.verdict.culprits, report.verdict.cause) == ((2,), "silent_death_sigkill")
    assert not [f for f in report.findings if f.rule == "CRH004"]


@pytest.mark.parametrize("code", [-15, 143])
def test_a_worker_that_was_asked_to_end_is_no_origin(code: int) -> None:
    later = (*waits_for_store(1), *waits_for_store(3), failed(1, 1, 733))
    report = judged(steps(0, 40), failed(code, 2, 714), restarted(), later)
    assert not [f for f in report.findings if f.rule == "CRH004"]


def test_a_stop_from_outside_is_the_cause_of_the_exit_that_follows_it() -> None:
    stop = "slurmstepd: error: *** JOB 551 ON n7 CANCELLED AT 2029-03-09T04:11:00 DUE TO TIME LIMIT ***"
    assert judged(steps(0, 40), stop, failed(3, 2, 714)).verdict.shape is Shape.STOPPED


def test_the_global_rank_is_that_of_the_process_in_the_list_of_failures() -> None:
    rows = [line.replace("rank      : 2 (", "rank      : 10 (") for line in table((2, 5, 714))]
    end = last_end(log(steps(0, 40), failed(5, 2, 714), rows))
    assert end is not None
    assert (end.rank, end.local_rank) == (10, 2)


def test_the_local_rank_of_a_larger_job_is_no_rank() -> None:
    beside = [f"[rank31]: {line}" for line in steps(0, 9)]
    end = last_end(log(beside, failed(5, 2, 714)))
    assert end is not None
    assert end.rank is None


def test_each_finding_of_the_rule_has_a_line_as_proof() -> None:
    report = judged(steps(0, 40), failed(3, 2, 714), waits_for_store(1), failed(1, 1, 733))
    found = next(f for f in report.findings if f.rule == "CRH004")
    assert [e.locator.line for e in found.evidence] == [41, 46]
    assert found.severity is model.Severity.ERROR
    assert place(report, "CRH004") == "train.log:41"


def test_folders_of_attempts_are_told_apart(tmp_path: Path) -> None:
    def write(name: str, *lines: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    for rank in range(4):
        write(f"logs/job_7/attempt_0/{rank}/stdout.log", *(f"[rank{rank}]: {line}" for line in steps(1, 40)))
        write(f"logs/job_7/attempt_1/{rank}/stderr.log", *(waits_for_store(rank) if rank % 2 else ["starts"]))
    write("torchrun.log", failed(3, 2, 714), failed(1, 1, 733), *table((1, 1, 733), (3, 1, 735)))
    verdict = triage(tmp_path).verdict
    assert (verdict.shape, verdict.culprits, verdict.onset.step) == (Shape.CRASH, (2,), 39)


@pytest.mark.parametrize(("highest", "rank"), [(15, 2), (16, None)])
def test_a_local_rank_is_a_rank_up_to_the_devices_of_one_node(highest: int, rank: int | None) -> None:
    ranks = (f"[rank {r}] step 40 | loss 2.0 | grad_norm 0.7" for r in range(highest + 1))
    end = last_end(log(steps(0, 40), ranks, failed(7, 2, 714)))
    assert end is not None
    assert end.rank == rank


@pytest.mark.parametrize(
    ("code", "again", "explains"), [(1, False, False), (7, False, True), (1, True, True), (-15, True, False)]
)
def test_an_end_explains_complaints_unless_they_may_have_caused_it(code: int, again: bool, explains: bool) -> None:
    end = GroupEnd("a.log", 3, None, code, 0, 711, "", "", restarted=again)
    assert end.explains is explains


@pytest.mark.parametrize(
    ("code", "cause"),
    [(0, "early_exit"), (1, "exit_nonzero"), (-15, "exit_nonzero"), (143, "exit_nonzero"), (-11, "silent_death_segv")],
)
def test_a_process_that_said_nothing_has_the_cause_of_its_code(code: int, cause: str) -> None:
    assert cause_of(code) == cause
