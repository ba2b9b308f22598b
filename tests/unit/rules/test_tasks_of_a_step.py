"""Tasks of a step with a log each: who printed nothing, what srun says of each, and who ended the step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Shape, Verdict

GONE = "RuntimeError: [/src/gloo/transport/tcp/pair.cc:537] Read error [10.0.0.7]:8108: Connection reset by peer."
LATE = "RuntimeError: [/src/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation"
PAIR_LATE = "RuntimeError: Application timeout caused pair closure"
SIZES = (
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
    "  what():  [enforce fail at /src/pair.cc:456] op.preamble.length <= op.nbytes. 3072 vs 20. "
    "Received data size doesn't match expected size."
)
CONNECTING = (
    "torch.distributed.DistNetworkError: The client socket has timed out after 40000ms while trying to connect to "
    "(10.0.0.7, 29500)."
)
STEPS = "".join(f"step {s} | loss {2 + 3 / (s + 1):.4f}\n" for s in range(1, 41))
ENDED = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
STEP = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2029-03-09T04:13:20 ***\n"
JOB = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2029-03-09T04:13:20 ***\n"


def raised(words: str, rank: int | None = None) -> str:
    before = "" if rank is None else f"[rank{rank}]: "
    frames = (
        "Traceback (most recent call last):",
        '  File "/app/fit.py", line 31, in <module>',
        "    main()",
        '  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 3252, in all_reduce',
        "    work.wait()",
        words,
    )
    return "".join(f"{before}{line}\n" for line in frames)


def task(number: str, end: str) -> str:
    return f"srun: error: n1: task {number}: {end}\n"


def judged(folder: Path, files: Mapping[str, str]) -> Verdict:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return triage(folder).verdict


def test_the_task_that_printed_nothing_and_that_srun_does_not_list_left_with_code_0(tmp_path: Path) -> None:
    files = {"job-7_0.out": STEPS + raised(GONE, 0), "job-7_1.out": raised(GONE, 1), "job-7_2.out": ""}
    verdict = judged(
        tmp_path, files | {"run.log": task("1", "Exited with exit code 1") + ENDED + STEP + task("0", "Terminated")}
    )
    assert (verdict.culprits, verdict.cause) == ((2,), "early_exit")


def test_the_task_that_srun_saw_end_with_a_code_and_that_said_nothing_ended_by_itself(tmp_path: Path) -> None:
    files = {"job-7_0.out": STEPS + raised(GONE, 0), "job-7_1.out": "", "job-7_2.out": raised(GONE, 2)}
    ends = task("1", "Exited with exit code 1") + ENDED + STEP + task("0,2", "Terminated")
    verdict = judged(tmp_path, files | {"run.log": ends})
    assert (verdict.culprits, verdict.cause) == ((1,), "exit_nonzero")


def test_ranks_that_print_to_rank_0_alone_name_no_culprit_of_many(tmp_path: Path) -> None:
    files = {"job-7_0.out": STEPS + raised(GONE, 0), **{f"job-7_{n}.out": "" for n in range(1, 8)}}
    assert judged(tmp_path, files).culprits == ()


def test_an_abort_whose_own_words_are_a_mismatch_is_one(tmp_path: Path) -> None:
    files = {"job-7_0.err": raised(GONE, 0), "job-7_0.out": STEPS, "job-7_1.err": SIZES + "\n"}
    ends = task("1", "Aborted (core dumped)") + ENDED + STEP + task("0", "Terminated")
    assert judged(tmp_path, files | {"job-7.err": ends}).cause == "collective_mismatch_size"


def test_an_abort_without_a_word_is_a_death_by_a_signal(tmp_path: Path) -> None:
    files = {"job-7_0.err": raised(GONE, 0), "job-7_0.out": STEPS, "job-7_1.err": "step 40\n"}
    ends = task("1", "Aborted (core dumped)") + ENDED + STEP + task("0", "Terminated")
    verdict = judged(tmp_path, files | {"job-7.err": ends})
    assert (verdict.culprits, verdict.cause) == ((1,), "silent_death_signal")


def test_who_cannot_reach_the_store_waits_for_the_task_that_is_silent(tmp_path: Path) -> None:
    files = {"job-7_0.err": "", "job-7_1.err": raised(CONNECTING)}
    ends = task("1", "Exited with exit code 1") + ENDED + STEP + task("0", "Terminated")
    verdict = judged(tmp_path, files | {"job-7.err": ends})
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.HANG, (0,), "never_entered")


def test_all_ranks_that_time_out_in_one_call_wait_in_collectives_that_do_not_meet(tmp_path: Path) -> None:
    files = {f"job-7_{n}.err": raised(LATE, n) for n in range(4)}
    verdict = judged(tmp_path, files | {"job-7_0.out": STEPS})
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.HANG, (), "collective_mismatch")


def test_who_finds_its_peers_gone_in_the_call_in_which_they_timed_out_came_too_late(tmp_path: Path) -> None:
    files = {f"job-7_{n}.err": raised(GONE if n == 2 else LATE, n) for n in range(4)}
    verdict = judged(tmp_path, files | {"job-7_0.out": STEPS})
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.HANG, (2,), "never_entered")


def test_a_rank_that_did_not_time_out_with_the_others_is_the_one_they_wait_for(tmp_path: Path) -> None:
    files = {f"job-7_{n}.err": raised(PAIR_LATE, n) for n in range(3)} | {"job-7_3.err": ""}
    verdict = judged(tmp_path, files | {"job-7_0.out": STEPS})
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.HANG, (3,), "never_entered")


@pytest.mark.parametrize(
    ("ends", "cause"),
    [
        (ENDED + STEP + task("0", "Terminated"), "external_termination"),
        (JOB + ENDED + STEP + task("0", "Terminated"), "cancelled"),
        (ENDED + STEP.replace(" ***\n", " DUE TO TIME LIMIT ***\n") + task("0", "Terminated"), "time_limit"),
    ],
)
def test_a_step_that_was_ended_alone_does_not_say_who_cancelled_a_job(tmp_path: Path, ends: str, cause: str) -> None:
    verdict = judged(tmp_path, {"job-7.out": STEPS, "job-7.err": ends})
    assert (verdict.shape, verdict.cause, verdict.onset.step) == (Shape.STOPPED, cause, 40)


def test_a_step_that_ends_after_its_task_failed_was_not_stopped(tmp_path: Path) -> None:
    ends = task("0", "Exited with exit code 1") + ENDED + STEP
    assert judged(tmp_path, {"job-7.out": STEPS, "job-7.err": ends}).shape is Shape.CRASH


def test_a_stop_is_where_the_stopped_process_ended_though_a_tracker_has_the_finer_clock(tmp_path: Path) -> None:
    rows = [f"{s},{1867711980 + s},{2 + 3 / s}" for s in range(1, 41)]
    files = {"metrics.csv": "\n".join(["step,timestamp,loss", *rows]), "job-7.out": STEPS}
    stop = JOB.replace("2029-03-09T04:13:20", "2029-03-09T04:13:10").replace(" ***\n", " DUE TO PREEMPTION ***\n")
    assert judged(tmp_path, files | {"job-7.err": stop}).onset.step == 40


FIRST = (
    "E0309 04:13:20.000000 9 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {code}) "
    "local_rank: 2 (pid: 4711) of binary: /env/bin/python3\n"
)


@pytest.mark.parametrize("code", [-15, 143])
def test_a_worker_that_a_signal_asked_to_end_before_any_failed_was_stopped(tmp_path: Path, code: int) -> None:
    ranks = {f"logs/attempt_0/{n}/stdout.log": STEPS for n in range(4)}
    for name in ranks:
        (tmp_path / name).parent.mkdir(parents=True)
    verdict = judged(tmp_path, ranks | {"run.log": FIRST.format(code=code)})
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.STOPPED, (2,), "external_termination")


def test_the_first_end_that_torchrun_tells_is_how_that_rank_ended_though_no_list_follows(tmp_path: Path) -> None:
    ranks = {f"logs/attempt_0/{n}/stderr.log": "" if n == 2 else raised(GONE, n) for n in range(4)}
    for name in ranks:
        (tmp_path / name).parent.mkdir(parents=True)
    verdict = judged(tmp_path, ranks | {"logs/attempt_0/0/stdout.log": STEPS, "run.log": FIRST.format(code=-7)})
    assert (verdict.culprits, verdict.cause) == ((2,), "silent_death_sigbus")


def test_a_worker_that_its_launcher_had_to_kill_was_stuck_and_did_not_die(tmp_path: Path) -> None:
    ranks = {f"logs/attempt_0/{n}/stderr.log": "" if n == 2 else raised(LATE, n) for n in range(4)}
    for name in ranks:
        (tmp_path / name).parent.mkdir(parents=True)
    forced = "Unable to shutdown process 4711 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL\n"
    logs = {"logs/attempt_0/0/stdout.log": STEPS, "run.log": FIRST.format(code=-9) + forced}
    verdict = judged(tmp_path, ranks | logs)
    assert (verdict.shape, verdict.culprits) == (Shape.HANG, (2,))


def test_the_task_that_srun_calls_out_of_memory_is_the_culprit(tmp_path: Path) -> None:
    ends = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\n" + task("3", "Out Of Memory")
    verdict = judged(tmp_path, {"job-7.out": STEPS, "job-7.err": ends})
    assert (verdict.shape, verdict.culprits) == (Shape.OOM, (3,))


def test_tasks_that_srun_lists_together_are_no_single_culprit(tmp_path: Path) -> None:
    ends = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\n" + task("0-3", "Out Of Memory")
    assert judged(tmp_path, {"job-7.out": STEPS, "job-7.err": ends}).culprits == ()


WORKER = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed."


@pytest.mark.parametrize(
    ("last", "cause"), [(WORKER, "loader_worker_died"), ("RuntimeError: the batch is gone", "peer_gone")]
)
def test_what_says_more_than_a_lost_peer_decides_though_it_came_second(tmp_path: Path, last: str, cause: str) -> None:
    handling = "\nDuring handling of the above exception, another exception occurred:\n\n"
    lines = STEPS + raised("ConnectionResetError: [Errno 104] Connection reset by peer") + handling + raised(last)
    assert judged(tmp_path, {"train.log": lines}).cause == cause


LAUNCH = "[rank1]: 2029-03-09 04:13:03,104 watchdog died: CUDA error: unspecified launch failure\n"
REMOTE = "[rank{}]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting early.\n"
LOST = "".join(REMOTE.format(n) for n in (0, 2, 3))
SIGNALLED = "srun: launch/slurm: _step_signal: Terminating StepId=7.0\n"
DMESG = (
    "[Fri Mar  9 04:13:01 2029] NVRM: Xid (PCI:0000:4e:00): 79, pid='<unknown>', name=<unknown>, "
    "GPU has fallen off the bus.\n"
)


def test_what_srun_kills_after_a_task_aborted_did_not_die_with_it(tmp_path: Path) -> None:
    ends = task("1", "Aborted (core dumped)") + SIGNALLED + STEP + task("0,2-3", "Killed")
    verdict = judged(tmp_path, {"job.log": STEPS + LAUNCH + LOST + ends})
    assert (verdict.culprits, verdict.cause) == ((1,), "kernel_launch_failure")


def test_tasks_that_were_killed_before_the_step_was_ended_died_alike(tmp_path: Path) -> None:
    ends = task("0,2-3", "Killed") + task("1", "Aborted (core dumped)") + SIGNALLED + STEP
    assert judged(tmp_path, {"job.log": STEPS + LOST + ends}).cause != "silent_death_signal"


def test_the_kernels_log_knows_more_of_the_rank_that_the_others_lost(tmp_path: Path) -> None:
    ends = task("1", "Aborted (core dumped)") + SIGNALLED + STEP + task("0,2-3", "Killed")
    verdict = judged(tmp_path, {"job.log": STEPS + LAUNCH + LOST + ends, "n1.dmesg": DMESG})
    assert (verdict.culprits, verdict.cause) == ((1,), "gpu_fell_off_the_bus")


WORKER = "(RayTrainWorker pid=441{n}, ip=10.0.7.1{n}) "
KILLED = (
    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
    "Memory on the node (IP: 10.0.7.12, ID: 8f) where the task (actor ID: 91, name=_RayTrainWorker, pid=4412, "
    "memory used=38.11GB) was running was 60.84GB / 64.00GB (0.95).\n"
)


@pytest.mark.parametrize(
    ("says", "culprits"),
    [("Setting up process group for: env:// [rank={n}, world_size=3]", (2,)), ("Using 3 devices", ())],
)
def test_ray_says_whose_process_it_killed(tmp_path: Path, says: str, culprits: tuple[int, ...]) -> None:
    log = "".join(f"{WORKER}{says}\n".format(n=n) for n in range(3))
    log += "".join(WORKER.format(n=0) + line + "\n" for line in STEPS.splitlines())
    verdict = judged(tmp_path, {"driver.log": log + KILLED})
    assert (verdict.shape, verdict.culprits) == (Shape.OOM, culprits)


STALL = (
    "[1,0]<stderr>:W horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be reduced by subset "
    "of ranks and are waiting for remainder of ranks for more than 60 seconds.\n"
    "[1,0]<stderr>:Missing ranks:\n"
)


@pytest.mark.parametrize(
    ("line", "culprits"),
    [("3: [grads/HorovodAllreduce_17_0, ...]", (3,)), ("3: allreduce took 3 s", ())],
)
def test_horovod_lists_the_ranks_that_miss_in_lines_of_their_own(
    tmp_path: Path, line: str, culprits: tuple[int, ...]
) -> None:
    log = "".join(f"[1,{n}]<stdout>:rank {n} of 4\n" for n in range(4))
    log += "".join(f"[1,0]<stdout>:{row}\n" for row in STEPS.splitlines()) + STALL + f"[1,0]<stderr>:{line}\n"
    verdict = judged(tmp_path, {"run.log": log})
    assert (verdict.shape, verdict.culprits) == (Shape.HANG, culprits)


WAITS = 'Process 10{n}: python fit.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread 10{n} (idle): "MainThread"\n'
REDUCE = "    all_reduce (torch/distributed/distributed_c10d.py:3252)\n    <module> (fit.py:23)\n"
LOCK = "    acquire (fit.py:29)\n    <module> (fit.py:40)\n"
SENT = "W0309 04:{} 28051 torch/distributed/elastic/agent/server/api.py:1010] Received 15 death signal, shutting down\n"


@pytest.mark.parametrize(
    ("at", "shape", "culprits"),
    [("00:51.500", Shape.HANG, (1,)), ("00:49.500", Shape.STOPPED, ()), ("00:30.500", Shape.STOPPED, ())],
    ids=["after eleven intervals", "after nine", "before the last record"],
)
def test_a_stop_that_came_to_ranks_that_stood_still_is_no_cause(
    tmp_path: Path, at: str, shape: Shape, culprits: tuple[int, ...]
) -> None:
    steps = "".join(f"2029-03-09 04:00:{s:02d},500 INFO step {s} loss {2 + 3 / (s + 1):.4f}\n" for s in range(1, 41))
    files = {f"rank{n}.log": steps for n in range(2)}
    files |= {f"stack_rank{n}.txt": WAITS.format(n=n) + (REDUCE, LOCK)[n] for n in range(2)}
    files["launcher.log"] = "2029-03-09 03:59:00 INFO start\n" * 3 + SENT.format(at)
    verdict = judged(tmp_path, files)
    assert (verdict.shape, verdict.culprits) == (shape, culprits)


@pytest.mark.parametrize(("word", "named"), [("t_dados", True), ("t_dedos", False)])
def test_the_rank_that_waits_for_its_data_is_named_in_other_languages_too(
    tmp_path: Path, word: str, named: bool
) -> None:
    for rank in range(3):
        slow = [rank == 2 and n > 60 for n in range(1, 121)]
        data = [0.08 if late else 0.01 + n % 3 / 1e4 for n, late in enumerate(slow)]
        steps = [0.1 if n >= 60 else 0.03 + n % 3 / 1e4 for n in range(120)]
        rows = (
            f'{{"passo": {n + 1}, "perda": {2 + 3 / (n + 1):.4f}, "{word}": {data[n]}, "t_passo": {steps[n]}}}\n'
            for n in range(120)
        )
        (tmp_path / f"posto{rank}.jsonl").write_text("".join(rows), encoding="utf-8")
    assert (triage(tmp_path).verdict.culprits == (2,)) is named
