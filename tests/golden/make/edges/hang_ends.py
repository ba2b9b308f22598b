"""Logs of jobs on either side of what decides who ended them: complaints, exit codes, restarts, clocks of nodes."""

from __future__ import annotations

from collections.abc import Iterator

from make.base import Label, Made, lines
from make.edges.hang import OPEN, Files, Job, Jobs, steps, waits_for, watchdog


def runs() -> Iterator[Made]:
    """Every job."""
    for part in (_logs, _exits, _restarts, _clocks):
        for name, job, label in part():
            yield Made(f"edge-hang-{name}", job.files(), label)


def _failed(local: int, code: int, pid: int = 4711) -> str:
    return (
        f"E0101 10:20:00.000000 139 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {code}) "
        f"local_rank: {local} (pid: {pid}) of binary: /opt/py/bin/python3"
    )


def _table(*blocks: tuple[int, int, int]) -> list[str]:
    """torchrun's list of failures: rank, exit code and process of each, the first one the root cause."""
    found = ["=" * 60, "train.py FAILED", "-" * 60]
    for at, (rank, code, pid) in enumerate((*blocks[1:], blocks[0])):
        last = at == len(blocks) - 1
        found += ["Root Cause (first observed failure):", "[0]:"] if last else [f"[{at + 1}]:"]
        found += [
            "  time      : 2026-01-01_10:20:00", "  host      : n1.example", f"  rank      : {rank} (local_rank: {rank})",
            f"  exitcode  : {code} (pid: {pid})" + ("  (SIGKILL)" if code == -9 else ""), "  error_file: <N/A>",
            "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
        ]  # fmt: skip
    return [*found, "=" * 60]


def _exits() -> Jobs:
    """How each process ended, as its launcher tells it."""
    out = {rank: steps(rank, 15) for rank in range(4)}
    for code in (-9, -11, -6, 1, 3, 137, 143, -15):
        shape = "crash|stopped" if code in {143, -15} else "crash|hang|oom"
        launcher = [_failed(2, code), *_table((2, code, 4711))]
        yield f"exit-{code}", Job(out=out, launcher=launcher), waits_for(2, shape=shape)
        if code in {-6, 137, -15}:
            continue
        err = {rank: watchdog(rank) for rank in (0, 1, 3)}
        yield f"exit-{code}-with-complaints", Job(out=out, err=err, launcher=launcher), waits_for(2, shape=shape)
    yield "exit-without-table", Job(out=out, launcher=[_failed(2, -9)]), waits_for(2, shape="crash|oom|hang")
    trace = ["  traceback : Traceback (most recent call last):", '    File "train.py", line 40, in <module>', "  ValueError: bad batch"]  # fmt: skip
    told = [*steps(0, 70), _failed(2, 1), *[line for line in _table((2, 1, 4711)) if "traceback" not in line][:-1], *trace, "=" * 60]  # fmt: skip
    yield "exit-1-with-its-error-in-the-table", Job(launcher=told), waits_for(2, shape="crash")
    two = [_failed(1, 1), *_table((1, 1, 4711), (2, 1, 4712))]
    yield "exit-1-of-two", Job(out=out, launcher=two), OPEN
    mixed = [_failed(1, -9), *_table((1, -9, 4711), (2, -6, 4712), (3, -15, 4713))]
    yield "exit-of-three-kinds", Job(out=out, launcher=mixed), waits_for(1, shape="crash|oom")
    forced = ["Unable to shutdown process 4712 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL", *_table((1, 1, 4711), (2, -9, 4712))]  # fmt: skip
    yield "exit-forced", Job(out=out, launcher=forced), OPEN
    trace = ["Traceback (most recent call last):", '  File "train.py", line 40, in <module>', "ValueError: bad batch"]
    yield "exit-1-and-its-error", Job(out=out, err={2: trace}, launcher=[_failed(2, 1), *_table((2, 1, 4711))]), waits_for(2, shape="crash")  # fmt: skip
    yield "exit-1-and-the-error-of-another", Job(out=out, err={1: trace}, launcher=[_failed(2, 1), *_table((2, 1, 4711))]), OPEN  # fmt: skip


def _restarts() -> Jobs:
    """Worker groups that are started anew, and whether they train again."""
    again = "W0101 10:20:01.000000 139 torch/distributed/elastic/agent/server/api.py:900] [default] Worker group FAILED. 1/2 attempts left; will restart worker group"  # fmt: skip
    for after in (0, 2, 3):
        more = steps(0, after, 1300, 16) if after else []
        launcher = [
            *steps(0, 15),
            _failed(1, 1),
            again,
            *more,
            _failed(0, 1, 4799),
            *_table((0, 1, 4799), (1, 1, 4800)),
        ]
        yield f"restart-then-{after}-steps", Job(launcher=launcher), OPEN
    closed = "RuntimeError: [rank0]: Connection closed by peer [10.0.0.2]:29500"
    for code in (1, 3, -9, -15):
        launcher = [*steps(0, 15), _failed(1, code), again, closed, _failed(0, 1, 4799), *_table((0, 1, 4799))]
        yield f"restart-after-{code}-then-complaint", Job(launcher=launcher), OPEN
    launcher = [*steps(0, 15), _failed(1, -9), again, *steps(0, 10, 1300, 16), "Training complete"]
    yield "restart-then-success", Job(launcher=launcher), Label(outcome="healthy|cannot_say")


def _clocks() -> Jobs:
    """Two nodes whose clocks stand apart, and how many steps tell it."""
    for shared in (2, 3):
        for apart in (0.0, 40.0):
            found: dict[str, str] = {}
            for rank in range(4):
                place = f"node{rank // 2}/none_a1b2/attempt_0/{rank % 2}"
                begin = apart * (rank // 2)
                found[f"{place}/stdout.log"] = lines(steps(rank, shared, begin))
                found[f"{place}/stderr.log"] = lines(watchdog(rank) if rank != 3 else [f"[rank{rank}]: slow storage"])
            yield f"clocks-apart-{apart:g}-{shared}-steps", Files(found), waits_for(3)


def _logs() -> Jobs:
    """Logs alone: who complains, who is silent, who stopped printing first."""
    for ranks in (2, 3, 4):
        out = {rank: steps(rank, 20) for rank in range(ranks)}
        err = {rank: watchdog(rank) for rank in range(ranks) if rank != 1}
        yield f"silent-among-{ranks}", Job(out=out, err={**err, 1: ["loading shard 9"]}), waits_for(1)
    out = {rank: steps(rank, 20 - 4 * (rank == 2)) for rank in range(4)}
    yield "silent-and-behind", Job(out=out, err={rank: watchdog(rank) for rank in range(4) if rank != 2}), waits_for(2)
    yield "all-complain", Job(out={r: steps(r, 20) for r in range(3)}, err={r: watchdog(r) for r in range(3)}), OPEN
    err = {rank: watchdog(rank, 21 - (rank == 1), enqueued=21 - (rank == 1)) for rank in range(3)}
    yield "one-complains-of-an-earlier-number", Job(err=err), OPEN
    closed = "[rank{0}]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.{1}]:29500"  # fmt: skip
    err = {rank: [closed.format(rank, 2)] for rank in (0, 2, 3)}
    yield "peers-lost-one", Job(out={r: steps(r, 12) for r in range(4)}, err={**err, 1: []}), waits_for(1, shape="hang|crash")  # fmt: skip
    trace = ["Traceback (most recent call last):", '  File "train.py", line 40, in <module>', "    main()", "KeyError: 'labels'"]  # fmt: skip
    for ranks in (2, 4):
        err = {rank: trace if rank == 1 else watchdog(rank) for rank in range(ranks)}
        yield f"error-of-one-among-{ranks}", Job(out={r: steps(r, 12) for r in range(ranks)}, err=err), waits_for(1, shape="crash")  # fmt: skip
    err = {0: ["[Rank 0]: Rank 2 failed to pass monitoredBarrier in 90000 ms"], 1: watchdog(1)}
    yield "barrier-names-a-rank", Job(err=err), waits_for(2)
    err = {0: watchdog(0), 1: watchdog(1), 2: watchdog(2)}
    sized = Job(out={r: steps(r, 12) for r in range(2)}, err={r: watchdog(r) for r in range(2)}).files()
    yield (
        "silent-by-the-size-in-settings",
        Files(sized | {"config.yaml": "model: tiny\nworld_size: 3\n"}),
        waits_for(2),
    )
    yield "complaints-then-success", Job(out={r: [*steps(r, 20), "Training complete"] for r in range(3)}, err=err), Label(outcome="healthy|cannot_say|failed", shape="none|hang")  # fmt: skip
