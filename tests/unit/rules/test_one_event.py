"""One failure is one event: an inner exception decides, launchers name ranks and codes, tracebacks are stacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Confidence, Outcome, Shape, Verdict

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB."
GONE = "RuntimeError: [/src/gloo/transport/tcp/pair.cc:537] Read error [10.0.0.7]:8108: Connection reset by peer."
LATE = "RuntimeError: [/src/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation"
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: 'cache.json'"
DONE = "Training finished."
CAUSE = "The above exception was the direct cause of the following exception:"
HANDLING = "During handling of the above exception, another exception occurred:"


def steps(last: int, before: str = "") -> Iterator[str]:
    return (
        f"{before}step {s} | loss {2 + 3 / (s + 1):.4f} | grad_norm {0.7 + 0.01 * (s % 9):.3f}" for s in range(last)
    )


def raised(words: str, before: str = "", call: str = "step", file: str = "/app/fit.py") -> Sequence[str]:
    frames = (
        "Traceback (most recent call last):",
        '  File "/app/fit.py", line 31, in <module>',
        "    main()",
        f'  File "{file}", line 3252, in {call}',
        "    work.wait()",
    )
    return [before + line for line in (*frames, words)]


def waits(rank: int, call: str, words: str = LATE) -> Sequence[str]:
    return raised(words, f"[rank{rank}]: ", call, "/env/site-packages/torch/distributed/distributed_c10d.py")


def write(folder: Path, name: str, *parts: str | Sequence[str] | Iterator[str]) -> None:
    lines = [line for part in parts for line in ([part] if isinstance(part, str) else part)]
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def judged(folder: Path, *parts: str | Sequence[str] | Iterator[str]) -> Verdict:
    write(folder, "train.log", *parts)
    return triage(folder).verdict


def table(*ends: tuple[int, int], first: int) -> Iterator[str]:
    """What torchrun prints of ranks and exit codes; `first` is its root cause."""
    yield "Failures:"
    for place, (rank, code) in enumerate(sorted(ends, key=lambda end: end[0] == first)):
        if rank == first:
            yield "-" * 60
            yield "Root Cause (first observed failure):"
        yield from (f"[{place}]:", "  time      : 2029-03-09_04:13:20", "  host      : box1")
        yield from (f"  rank      : {rank} (local_rank: {rank})", f"  exitcode  : {code} (pid: {800 + rank})")
        yield from ("  error_file: <N/A>", "  traceback : To enable traceback see: https://example.org")


def test_what_is_wrapped_decides_and_what_wraps_it_is_no_second_event(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(30), raised(OOM), "", CAUSE, "", raised("RuntimeError: the step failed"))
    assert (verdict.shape, verdict.cause) == (Shape.OOM, "gpu_out_of_memory")
    assert verdict.runner_up is None


def test_a_fallback_that_fails_by_itself_decides(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path, steps(30), raised("ModuleNotFoundError: No module named 'fused'"), "", HANDLING, "", raised(OOM)
    )
    assert verdict.shape is Shape.OOM


def test_a_file_that_is_closed_half_written_is_an_echo_of_the_full_disk(tmp_path: Path) -> None:
    full, closed = (
        "OSError: [Errno 28] No space left on device",
        "RuntimeError: [enforce fail at inline_container.cc:9] . unexpected pos 64 vs 0",
    )
    assert judged(tmp_path, steps(30), raised(full), "", HANDLING, "", raised(closed)).cause == "disk_full"


@pytest.mark.parametrize(
    ("first", "between", "last", "line"),
    [
        (OOM, CAUSE, "RuntimeError: the step failed", 36),  # 30 records and 5 lines of frames before
        (MISSING, HANDLING, OOM, 45),  # 6 lines of the first and 3 between too
    ],
)
def test_the_evidence_of_a_chain_is_the_line_of_the_exception_that_decides(
    first: str, between: str, last: str, line: int, tmp_path: Path
) -> None:
    write(tmp_path, "train.log", steps(30), raised(first), "", between, "", raised(last))
    evidence = triage(tmp_path).findings[0].evidence[0]
    assert (evidence.locator.line, evidence.quote) == (line, OOM)


def test_an_interrupt_decides_whatever_its_handling_raises(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(30), raised("KeyboardInterrupt"), "", HANDLING, "", raised(GONE))
    assert (verdict.shape, verdict.cause) == (Shape.STOPPED, "interrupted_by_user")


def test_the_exception_inside_a_compilers_message_decides(tmp_path: Path) -> None:
    wrapper = "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:"
    verdict = judged(tmp_path, steps(30), raised(wrapper), OOM)
    assert (verdict.shape, verdict.cause) == (Shape.OOM, "gpu_out_of_memory")


def test_a_bare_exception_is_the_programs_own(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(30), raised("Exception: schedule and data disagree"))
    assert (verdict.shape, verdict.cause, verdict.confidence) == (Shape.CRASH, "uncaught_exception", Confidence.HIGH)


def test_a_traceback_beside_the_output_of_a_run_that_finished_was_caught(tmp_path: Path) -> None:
    write(tmp_path, "job-7.out", steps(40), DONE)
    write(tmp_path, "job-7.err", raised(MISSING))
    assert triage(tmp_path).verdict.outcome is Outcome.HEALTHY


def test_a_traceback_beside_a_finished_run_counts_where_a_launcher_tells_of_a_failure(tmp_path: Path) -> None:
    write(tmp_path, "job-7.out", steps(40), DONE)
    write(tmp_path, "job-7.err", raised(MISSING), "srun: error: box1: task 0: Exited with exit code 1")
    assert triage(tmp_path).verdict.outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("Segmentation fault (core dumped)", "silent_death_segv"),
        ("Bus error (core dumped)", "silent_death_sigbus"),
        ("Killed", "silent_death_sigkill"),
    ],
)
def test_srun_names_the_task_that_a_signal_ended(tmp_path: Path, said: str, cause: str) -> None:
    write(tmp_path, "job_0.err", steps(30), waits(0, "all_reduce", GONE))
    write(tmp_path, "job.err", f"srun: error: box1: task 1: {said}", "srun: error: box1: task 0: Terminated")
    verdict = triage(tmp_path).verdict
    assert (verdict.culprits, verdict.cause, verdict.onset.step) == ((1,), cause, 29)


@pytest.mark.parametrize(("between", "outcome"), [([], Outcome.SUSPECT), (list(steps(12)), Outcome.FAILED)])
def test_a_death_in_native_code_behind_the_end_of_training_is_only_a_doubt(
    tmp_path: Path, between: list[str], outcome: Outcome
) -> None:
    write(tmp_path, "train.log", steps(30), "Training finished.", *between, "Segmentation fault (core dumped)")
    verdict = triage(tmp_path).verdict
    assert (verdict.outcome, verdict.cause) == (outcome, "silent_death_segv")
    assert ("after training had finished" in verdict.headline) is not between


def test_a_rank_that_left_with_0_is_in_no_list_and_was_not_killed(tmp_path: Path) -> None:
    write(tmp_path, "logs/x_1/attempt_0/0/stderr.log", waits(0, "all_reduce", GONE))
    write(tmp_path, "logs/x_1/attempt_0/0/stdout.log", steps(30))
    write(tmp_path, "logs/x_1/attempt_0/1/stdout.log", "ready")
    write(tmp_path, "train.log", table((0, 1), first=0))
    verdict = triage(tmp_path).verdict
    assert (verdict.culprits, verdict.cause) == ((1,), "early_exit")


def logged(second: int) -> list[str]:
    """What a library's logger prints of an exception that it caught, each line behind the same stamp."""
    lines = ["Traceback (most recent call last):", '  File "/env/site-packages/torch/debug.py", line 303, in _run']
    return [f"E0615 15:10:{second:02d}.132000 18 torch/debug.py:305] {line}" for line in (*lines, "KeyError: ('0', 0)")]


@pytest.mark.parametrize(("seconds", "outlived"), [((0, 2, 5), True), ((0, 2, 4), False), ((0, 9), False)])
def test_what_a_rank_logged_three_times_over_five_seconds_it_outlived(
    tmp_path: Path, seconds: tuple[int, ...], outlived: bool
) -> None:
    dumps = [line for second in seconds for line in logged(second)]
    write(tmp_path, "logs/x_1/attempt_0/0/stderr.log", *dumps, *["the step goes on"] * 30)
    write(tmp_path, "logs/x_1/attempt_0/0/stdout.log", steps(30))
    assert ("KeyError" in triage(tmp_path).verdict.headline) is not outlived


@pytest.mark.parametrize("ranks", [(None, None, None), (0, 0, 1)])
def test_what_several_ranks_or_an_unknown_one_logged_is_not_outlived(
    tmp_path: Path, ranks: tuple[int | None, ...]
) -> None:
    before = ["" if rank is None else f"[rank{rank}]: " for rank in ranks]
    dumps = [f"{rank}{line}" for second, rank in zip((0, 2, 5), before, strict=True) for line in logged(second)]
    write(tmp_path, "train.log", steps(30), *dumps, *["the step goes on"] * 30)
    assert "KeyError" in triage(tmp_path).verdict.headline


def test_a_rank_that_the_launcher_had_to_end_did_not_leave_with_0(tmp_path: Path) -> None:
    write(tmp_path, "logs/x_1/attempt_0/0/stderr.log", waits(0, "all_reduce", GONE))
    write(tmp_path, "logs/x_1/attempt_0/0/stdout.log", steps(30))
    write(tmp_path, "logs/x_1/attempt_0/1/stdout.log", "ready")
    write(
        tmp_path,
        "train.log",
        "W0615 15:11:05.123000 4700 Sending process 4712 closing signal SIGTERM",
        table((0, 1), first=0),
    )
    verdict = triage(tmp_path).verdict
    assert (verdict.culprits, verdict.cause) != ((1,), "early_exit")
    assert "exit code 0" not in verdict.headline


def test_a_rank_that_ended_with_1_and_said_nothing_was_not_killed(tmp_path: Path) -> None:
    for rank in (0, 2):
        write(tmp_path, f"logs/x_1/attempt_0/{rank}/stderr.log", waits(rank, "all_reduce", GONE))
    write(tmp_path, "logs/x_1/attempt_0/1/stdout.log", "ready")
    write(tmp_path, "train.log", table((0, -15), (2, -15), (1, 1), first=1))
    verdict = triage(tmp_path).verdict
    assert (verdict.culprits, verdict.cause) == ((1,), "exit_nonzero")


def test_the_one_rank_that_aborts_without_a_complaint_is_named(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(30, "[default0]:"), table((0, -15), (1, -6), first=1))
    assert (verdict.culprits, verdict.cause) == ((1,), "silent_death_signal")


def test_a_rank_whose_watchdog_aborts_it_is_a_victim(tmp_path: Path) -> None:
    told = "[rank1]:[E1] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=71, OpType=ALLREDUCE)"
    assert judged(tmp_path, steps(30), told, table((0, -15), (1, -6), first=1)).culprits == ()


def test_of_ranks_that_raised_in_their_waits_the_one_in_another_call_is_named(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(30), waits(0, "all_reduce"), waits(1, "barrier"), waits(2, "all_reduce"))
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.HANG, (1,), "collective_mismatch_op")


def test_of_two_ranks_the_one_in_the_barrier_left_training(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(30), waits(0, "all_reduce"), waits(1, "barrier"))
    assert (verdict.culprits, verdict.confidence) == ((1,), Confidence.LOW)


def test_ranks_that_all_wait_in_one_call_name_nobody(tmp_path: Path) -> None:
    assert judged(tmp_path, steps(30), waits(0, "all_reduce"), waits(1, "all_reduce")).culprits == ()


def test_where_a_rank_was_killed_the_calls_of_the_others_say_nothing(tmp_path: Path) -> None:
    ends = table((0, 1), (1, 1), (3, 1), (2, -9), first=2)
    calls = (waits(0, "all_reduce", GONE), waits(1, "barrier", GONE), waits(3, "all_reduce", GONE))
    assert judged(tmp_path, steps(30), *calls, ends).culprits == (2,)


def test_an_interrupted_rank_that_stood_in_a_read_is_the_one_that_did_not_come(tmp_path: Path) -> None:
    reads = raised("KeyboardInterrupt", "[rank1]: ", "read_shard", "/app/loader.py")
    calls = [waits(rank, "all_reduce", "KeyboardInterrupt") for rank in (0, 2)]
    write(tmp_path, "train.log", steps(30), waits(3, "all_reduce"), *calls, reads)
    assert any(f.rule == "HNG008" and f.culprits == (1,) for f in triage(tmp_path).findings)


def test_the_rank_whose_process_the_memory_killer_took_is_named(tmp_path: Path) -> None:
    killer = "Memory cgroup out of memory: Killed process 801 (python) total-vm:1129368kB, anon-rss:900000kB"
    write(
        tmp_path, "dmesg.log", "[Sun Nov 22 19:14:26 2026] python invoked oom-killer: order=0", f"[19:14:26] {killer}"
    )
    write(tmp_path, "train.log", steps(30, "[default0]:"), table((0, -15), (1, -9), first=1))
    verdict = triage(tmp_path).verdict
    assert (verdict.shape, verdict.cause, verdict.culprits) == (Shape.OOM, "host_out_of_memory", (1,))


def test_a_loader_worker_that_something_killed_is_no_proof_of_full_memory(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path, steps(30), raised("RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed. ")
    )
    assert (verdict.shape, verdict.cause) == (Shape.CRASH, "loader_worker_died")
    assert verdict.confidence is not Confidence.HIGH


def test_killed_behind_a_progress_bar_is_seen(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(30), " 23%|##3       | 30/130 [00:14<00:46,  2.13it/s]Killed")
    assert (verdict.shape, verdict.cause) == (Shape.CRASH, "silent_death_sigkill")


@pytest.mark.parametrize(
    ("line", "shape", "cause"),
    [
        (
            "Memory access fault by GPU node-4 (Agent handle: 0x55) on address 0x7f.",
            Shape.CRASH,
            "illegal_memory_access",
        ),
        ("RuntimeError: The NPU task failed, error code is 107020", Shape.HANG, "collective_timeout"),
        ("Missing ranks:", Shape.HANG, "collective_timeout"),
        ("box1:71:88 [0] NCCL WARN socket.cc:57 Connection closed by remote peer box2<4711>", Shape.CRASH, "peer_gone"),
    ],
)
def test_a_last_line_that_the_catalogue_knows_is_the_cause(tmp_path: Path, line: str, shape: Shape, cause: str) -> None:
    verdict = judged(tmp_path, steps(30), line)
    assert (verdict.shape, verdict.cause, verdict.onset.step) == (shape, cause, 29)


def test_a_connection_that_closes_while_training_goes_on_is_nothing(tmp_path: Path) -> None:
    line = "box1:71:88 [0] NCCL WARN socket.cc:57 Connection closed by remote peer box2<4711>"
    assert judged(tmp_path, line, steps(30), DONE).outcome is Outcome.HEALTHY


def test_a_launcher_that_puts_the_host_before_the_rank_loses_neither(tmp_path: Path) -> None:
    lines = [f"worker-{rank // 8}: {line}" for rank in (3, 20, 21) for line in waits(rank, "all_reduce")]
    found = judged(tmp_path, steps(30), lines)
    assert found.shape is Shape.HANG
    assert found.headline.startswith("Ranks 3, 20 and 21 timed out")


def test_a_word_and_a_colon_before_other_brackets_is_no_host(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(30), raised("ValueError: [rank] is no key of shard: [ranking]"))
    assert (verdict.shape, verdict.cause) == (Shape.CRASH, "uncaught_exception")


CUT = (
    "Traceback (most recent call last):",
    '  File "/app/fit.py", line 31, in <module>',
    "    main()",
    "lost sys.stderr",
)


def test_a_traceback_whose_words_are_lost_is_the_error_that_ended_a_run_that_had_become_slow(tmp_path: Path) -> None:
    took = [0.1 if step < 60 else 0.4 for step in range(120)]
    timed = (f"step {step} | loss {2 + 3 / (step + 1):.4f} | step_time {s:.3f}s" for step, s in enumerate(took))
    verdict = judged(tmp_path, timed, CUT)
    assert (verdict.shape, verdict.cause, verdict.onset.step) == (Shape.CRASH, "uncaught_exception", 119)


def test_a_peer_that_is_gone_is_no_error_of_the_run_that_tells_of_it(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(30), raised(GONE))
    assert (verdict.cause, verdict.confidence) == ("peer_gone", Confidence.LOW)


STOPPED = "received preemption notice, checkpoint saved, leaving"


@pytest.mark.parametrize("error", ["job-7.out", "job-7.err"])
def test_an_attempt_that_finds_its_checkpoint_missing_is_the_last_one(tmp_path: Path, error: str) -> None:
    write(
        tmp_path,
        "job-7.out",
        steps(30),
        STOPPED,
        "training for 124 steps",
        raised(MISSING) if error == "job-7.out" else "",
    )
    if error == "job-7.err":
        write(tmp_path, "job-7.err", raised(MISSING))
    verdict = triage(tmp_path).verdict
    assert (verdict.shape, verdict.cause) == (Shape.CRASH, "file_missing")


def test_a_temporary_folder_that_a_stop_takes_away_is_no_new_attempt(tmp_path: Path) -> None:
    gone = "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/pymp-x7'"
    assert judged(tmp_path, steps(30), STOPPED, "cleaning up", raised(gone)).shape is Shape.STOPPED


def test_a_stop_that_nothing_follows_is_a_stop(tmp_path: Path) -> None:
    write(tmp_path, "job-7.out", steps(30), STOPPED)
    write(tmp_path, "job-7.err", raised(MISSING))
    assert triage(tmp_path).verdict.shape is Shape.STOPPED


@pytest.mark.parametrize("line", ["Killed", "AssertionError: can only test a child process"])
def test_a_kill_or_a_lone_exception_after_the_end_is_noise(tmp_path: Path, line: str) -> None:
    assert judged(tmp_path, steps(30), DONE, line).outcome is Outcome.HEALTHY


def test_a_traceback_after_the_end_marker_of_training_is_a_failure_of_what_came_next(tmp_path: Path) -> None:
    assert judged(tmp_path, steps(30), DONE, "evaluating", raised(OOM)).shape is Shape.OOM


@pytest.mark.parametrize(("trained", "place"), [(0, "in an evaluation"), (5, "in the forward pass")])
def test_memory_that_runs_out_behind_the_last_of_several_evaluations_ran_out_in_it(
    tmp_path: Path, trained: int, place: str
) -> None:
    began, on = "***** Running Evaluation *****", [f"step {s} | loss 2.1000 | grad_norm 0.700" for s in range(30, 60)]
    more = [f"step {s} | loss 2.0500 | grad_norm 0.700" for s in range(60, 60 + trained)]
    verdict = judged(tmp_path, steps(30), began, on, began, more, raised(OOM, call="forward", file="/app/model.py"))
    assert place in verdict.headline


def test_a_table_of_exit_codes_alone_tells_of_a_death(tmp_path: Path) -> None:
    for rank in range(3):
        write(tmp_path, f"logs/x_1/attempt_0/{rank}/stdout.log", steps(30, f"rank={rank} "))
    write(tmp_path, "launch.log", table((1, 137), first=1))
    verdict = triage(tmp_path).verdict
    assert (verdict.outcome, verdict.culprits, verdict.cause) == (Outcome.FAILED, (1,), "silent_death_sigkill")
