"""One failure as one event: inner exceptions, launchers' codes, tracebacks as stacks, the step of a line that stands apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from make._logs import MAIN, STEP, done, falling, run_log, start, traceback
from make.base import Label, Made, lines

_C10D = "/opt/py/site-packages/torch/distributed/distributed_c10d.py"
_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of 79.15 GiB."
)
_GONE = "RuntimeError: [/opt/gloo/transport/tcp/pair.cc:534] Read error [10.0.0.3]:2211: Connection reset by peer"
_LATE = "RuntimeError: [/opt/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 60000ms for recv operation to complete"
_MISSING = "FileNotFoundError: [Errno 2] No such file or directory: 'out/step_80/model.pt'"
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n"
_HANDLING = "\nDuring handling of the above exception, another exception occurred:\n"
_CLOSED = "n7:4711:4790 [0] misc/socket.cc:57 NCCL WARN Connection closed by remote peer n8<40112>"
_LEAVES = "received preemption notice, checkpoint saved, leaving"


def runs() -> Iterator[Made]:
    """Errors in another file than the steps, chains and wrappers, ends that launchers tell of, and their near misses."""
    yield from _apart()
    yield from _wrapped()
    yield from _ends()
    yield from _waits()
    yield from _last_words()


def _log(steps: int = 90) -> str:
    return lines(start(plan=2000), run_log({"loss": falling(steps)}))


def _finished(steps: int = 90) -> str:
    return lines(start(plan=steps), run_log({"loss": falling(steps)}), done(steps))


def _apart() -> Iterator[Made]:
    own = Label("failed", "crash", ("uncaught_exception",), onset=90)
    error = traceback("Exception: schedule and data disagree", MAIN, STEP)
    yield Made("errors-in-the-other-stream", {"job-7.out": _log(), "job-7.err": lines(error)}, own)
    caught = traceback(_MISSING, MAIN, STEP)
    yield Made(
        "errors-caught-beside-a-finished-run",
        {"job-7.out": _finished(), "job-7.err": lines(caught)},
        Label("healthy"),
    )
    yield Made(
        "errors-beside-a-marker-that-srun-contradicts",
        {"job-7.out": _finished(), "job-7.err": lines(caught, "srun: error: n7: task 0: Exited with exit code 1")},
        Label("failed", "crash", ("file_missing", "uncaught_exception")),
    )
    again = (_LEAVES, *start(plan=2000))
    yield Made(
        "errors-preempted-then-nothing-to-load",
        {"job-7.out": _log(80) + lines(again), "job-7.err": lines(caught)},
        Label("failed", "crash", ("file_missing", "no_checkpoint_found")),
    )
    cleaned = traceback("FileNotFoundError: [Errno 2] No such file or directory: '/tmp/pymp-0c4'", MAIN)
    yield Made(
        "errors-preempted-then-cleaned-up",
        {"train.log": _log(80) + lines(_LEAVES, cleaned)},
        Label("failed", "stopped", ("preempted",), onset=80),
    )


def _wrapped() -> Iterator[Made]:
    oom = Label("failed", "oom", ("gpu_out_of_memory",), onset=90)
    inner, outer = traceback(_OOM, MAIN, STEP), traceback("RuntimeError: the step failed", MAIN)
    yield Made("errors-wrapped-out-of-memory", {"train.log": _log() + lines(inner, _CAUSE, outer)}, oom)
    compiled = traceback("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:", MAIN, STEP)
    yield Made("errors-compiler-quotes-out-of-memory", {"train.log": _log() + lines(compiled, _OOM)}, oom)
    absent = traceback("ModuleNotFoundError: No module named 'fused_attention'", MAIN)
    yield Made("errors-fallback-out-of-memory", {"train.log": _log() + lines(absent, _HANDLING, inner)}, oom)
    interrupt = traceback("KeyboardInterrupt", MAIN, STEP)
    yield Made(
        "errors-interrupt-and-its-tear-down",
        {"train.log": _log() + lines(interrupt, _HANDLING, traceback(_GONE, MAIN))},
        Label("failed", "stopped", ("interrupted_by_user",), onset=90),
    )


def _table(*ends: tuple[int, int]) -> list[str]:
    """What torchrun prints of ranks and exit codes, the root cause last."""
    found = ["train.py FAILED", "-" * 60, "Failures:"]
    for place, (rank, code) in enumerate(ends):
        if place == len(ends) - 1:
            found += ["-" * 60, "Root Cause (first observed failure):"]
        found += [
            f"[{place}]:", "  time      : 2026-03-01_10:04:02", "  host      : n7",
            f"  rank      : {rank} (local_rank: {rank})", f"  exitcode  : {code} (pid: {4700 + rank})",
            "  error_file: <N/A>", "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
        ]  # fmt: skip
    return [*found, "=" * 60]


def _raised(rank: int, words: str, call: str = "all_reduce") -> list[str]:
    frames = traceback(words, MAIN, STEP, (_C10D, 2810, call, "work.wait()"))
    text = frames if isinstance(frames, str) else "\n".join(frames)
    return [f"[rank{rank}]: {line}" for line in text.splitlines()]


def _workers(raised: dict[int, Sequence[str]], world: int, table: Sequence[str]) -> dict[str, str]:
    """Files of torchrun's `--log-dir`: rank 0 logs, some raise, all others only say that they are there."""
    files = {"torchrun.log": lines(table)}
    for rank in range(world):
        home = f"torchrun_logs/none_e5/attempt_0/{rank}"
        files[f"{home}/stdout.log"] = _log() if rank == 0 else lines("ready")
        files[f"{home}/stderr.log"] = lines(raised.get(rank, ()))
    return files


def _ends() -> Iterator[Made]:
    for said, cause in (("Segmentation fault (core dumped)", "segv"), ("Bus error", "sigbus"), ("Killed", "sigkill")):
        told = ("srun: error: n7: task 1: " + said, "srun: error: n7: task 0: Terminated")
        yield Made(
            f"errors-srun-task-{cause}",
            {"job-7_0.out": _log(), "job-7_0.err": lines(_raised(0, _GONE)), "job-7.err": lines(told)},
            Label("failed", "crash|hang", (f"silent_death_{cause}",), onset=90, culprits=(1,)),
        )
    yield Made(
        "errors-rank-left-with-0",
        _workers({0: _raised(0, _GONE)}, 2, _table((0, 1))),
        Label("failed", "crash|hang", ("early_exit",), onset=90, culprits=(1,)),
    )
    yield Made(
        "errors-rank-ended-with-1",
        _workers({r: _raised(r, _GONE) for r in (0, 2)}, 3, _table((0, -15), (2, -15), (1, 1))),
        Label("failed", "crash|hang", ("exit_nonzero",), onset=90, culprits=(1,)),
    )
    yield Made(
        "errors-rank-aborted-alone",
        _workers({}, 2, _table((0, -15), (1, -6))),
        Label("failed", "crash|hang", ("silent_death_signal", "aborted"), onset=90, culprits=(1,)),
    )
    killed = "[Sun Mar  1 10:04:01 2026] Memory cgroup out of memory: Killed process 4701 (python) total-vm:1129368kB, anon-rss:900000kB"
    yield Made(
        "errors-kernel-names-the-process",
        {**_workers({0: _raised(0, _GONE)}, 2, _table((0, -15), (1, -9))), "dmesg.log": lines(killed)},
        Label("failed", "oom", ("host_out_of_memory",), onset=90, culprits=(1,)),
    )


def _waits() -> Iterator[Made]:
    for name, calls, culprits in (
        ("one-of-three-in-a-barrier", ("all_reduce", "barrier", "all_reduce"), (1,)),
        ("one-of-two-in-a-barrier", ("all_reduce", "barrier"), (1,)),
        ("all-in-one-call", ("all_reduce",) * 3, ()),
    ):
        raised = {rank: _raised(rank, _LATE, call) for rank, call in enumerate(calls)}
        yield Made(
            f"errors-waits-{name}",
            _workers(raised, len(calls), _table(*((rank, 1) for rank in range(len(calls))))),
            Label("failed", "hang", onset=90, culprits=culprits),
        )
    hosts = [f"worker-{rank // 8}: {line}" for rank in (3, 20) for line in _raised(rank, _LATE)]
    yield Made(
        "errors-host-before-the-rank",
        {"train.log": _log() + lines(hosts)},
        Label("failed", "hang", onset=90, culprits=()),
    )


def _last_words() -> Iterator[Made]:
    crash = ("crash", "illegal_memory_access")
    for name, line, (shape, cause) in (
        ("rocm-fault", "Memory access fault by GPU node-4 (Agent handle: 0x55d0) on address 0x7f11. Reason: Unknown.", crash),
        ("npu-task-timeout", "RuntimeError: ACL stream synchronize failed, error code is 107020", ("hang", "collective_timeout")),
        ("horovod-list", "Missing ranks:\n1: [gradients/dense/kernel]", ("hang", "collective_timeout")),
        ("nccl-peer-closed", _CLOSED, ("crash", "peer_gone")),
        ("killed-behind-a-bar", " 69%|######9   | 90/130 [00:14<00:46,  2.13it/s]Killed", ("crash", "silent_death_sigkill")),
    ):  # fmt: skip
        yield Made(
            f"errors-last-{name}", {"train.log": _log() + lines(line)}, Label("failed", shape, (cause,), onset=90)
        )
    yield Made("errors-nccl-peer-closed-after-the-end", {"train.log": _finished() + lines(_CLOSED)}, Label("healthy"))
    worker = traceback("RuntimeError: DataLoader worker (pid 4733) is killed by signal: Killed. ", MAIN, STEP)
    yield Made(
        "errors-loader-worker-killed",
        {"train.log": _log() + lines(worker)},
        Label("failed", "crash", ("loader_worker_died",), onset=90),
    )
