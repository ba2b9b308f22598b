"""Jobs of several ranks that hung: who did not come, what each left (dumps, stacks, exit codes, host lines), and controls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from make._logs import MAIN, STEP, clock, done, falling, fixtures, run_log, start, traceback, waited
from make.base import Label, Made, lines

_C10D = "/opt/py/site-packages/torch/distributed/distributed_c10d.py"
_WAITS = (
    ("all_reduce", "torch/distributed/distributed_c10d.py", 2810),
    ("sync_grads", "loop.py", 88),
    ("<module>", "main.py", 12),
)
_READS = (("read", "storage/nfs.py", 44), ("read_shard", "data/shards.py", 31), ("<module>", "main.py", 10))
_GROUP = ("0", "default_pg")


def runs() -> Iterator[Made]:
    """Hangs that dumps and stacks explain, those that only lines explain, those of one log, and runs that did not hang."""
    yield from _with_dumps()
    yield from _with_stacks()
    yield from _with_lines()
    yield from _at_the_start()
    yield from _one_log()
    yield from _no_hangs()


def ranks(
    ends: Mapping[int, Sequence[str]], steps: int = 60, out: Mapping[int, Sequence[str]] | None = None
) -> dict[str, str]:
    """Files of torchrun's `--log-dir` for some ranks: what each printed, and how its standard error ended."""
    files: dict[str, str] = {}
    for rank, end in ends.items():
        home = f"torchrun_logs/none_h4/attempt_0/{rank}"
        log = run_log(
            {"loss": falling(steps, seed=rank)}, f"{{clock}} | INFO | rank={rank} | step {{step}} | loss {{loss:.4f}}"
        )
        files[f"{home}/stdout.log"] = lines(log, (out or {}).get(rank, ()))
        files[f"{home}/stderr.log"] = lines(f"[rank{rank}]: warning: slow storage", end)
    return files


def dumps(entries: Mapping[int, Iterable[dict[str, Any]]], world: int) -> dict[str, bytes]:
    """Flight-recorder dumps of one group over all ranks."""
    make = fixtures("hang_files")
    groups = {"0": ("default_pg", str(list(range(world))))}
    return {
        f"fr/nccl_trace_rank_{rank}": make.Pickled().of(make.dump(list(one), groups)) for rank, one in entries.items()
    }


def recorded(count: int, pending: int = 1, op: str = "nccl:all_reduce", **more: object) -> list[dict[str, Any]]:
    """`count` collectives that completed, then some that did not; `more` changes the first of these."""
    entry = fixtures("hang_files").entry
    done_ones = [entry(at, "nccl:all_reduce", _GROUP, at + 1) for at in range(count)]
    return done_ones + [
        entry(count + at, op if at == 0 else "nccl:all_reduce", _GROUP, count + at + 1, state="scheduled", retired=False, **(more if at == 0 else {}))
        for at in range(pending)
    ]  # fmt: skip


def stack(rank: int, frames: Sequence[tuple[str, str, int]], state: str = "idle") -> str:
    """What py-spy prints of a rank."""
    shown = "".join(f"    {name} ({file}:{number})\n" for name, file, number in frames)
    return (
        f"Process {4700 + rank}: /opt/py/bin/python3 -u main.py --local-rank={rank}\nPython v3.11.9 (/opt/py/bin/python3.11)\n\n"
        f'Thread {4700 + rank} ({state}): "MainThread"\n{shown}'
    )


def _stacks(frames: Mapping[int, Sequence[tuple[str, str, int]]]) -> dict[str, str]:
    return {
        f"stacks/pyspy_rank{rank}.txt": stack(rank, one, "active" if one is not _WAITS else "idle")
        for rank, one in frames.items()
    }


def _with_dumps() -> Iterator[Made]:
    entries = {rank: recorded(20, 0 if rank == 2 else 1) for rank in range(4)}
    yield Made(
        "hang-one-rank-skips-a-collective",
        {**ranks({r: [] if r == 2 else [waited(r, 21)] for r in range(4)}), **dumps(entries, 4)},
        Label("failed", "hang", ("never_entered",), onset=60, within=2, culprits=(2,)),
    )
    entries = {rank: recorded(20, 1, "nccl:all_gather" if rank == 1 else "nccl:all_reduce") for rank in range(4)}
    yield Made(
        "hang-one-rank-calls-another-collective",
        {**ranks({r: [waited(r, 21, "ALLGATHER" if r == 1 else "ALLREDUCE")] for r in range(4)}), **dumps(entries, 4)},
        Label("failed", "hang", ("collective_mismatch_op",), onset=60, within=2, culprits=(1,)),
    )
    entries = {rank: recorded(20, 1) for rank in range(4) if rank != 3}
    frozen = "Name:\tpython3\nState:\tT (stopped)\nPid:\t4703\nPPid:\t4690\nVmRSS:\t  20480 kB\nThreads:\t9\nwchan:\tdo_signal_stop\n"
    yield Made(
        "hang-frozen-process",
        {
            **ranks({r: [] if r == 3 else [waited(r, 21)] for r in range(4)}),
            **dumps(entries, 4),
            "proc/proc_rank3.txt": frozen,
        },
        Label("failed", "hang", ("frozen_process",), onset=60, within=2, culprits=(3,)),
    )
    entries = {rank: recorded(16, 4) if rank == 0 else recorded(20, 0) for rank in range(4)}
    xid = "[912345.120001] NVRM: Xid (PCI:0000:1a:00): 79, pid=4700, name=python3, GPU has fallen off the bus."
    yield Made(
        "hang-device-stands-still",
        {**ranks({r: [waited(r, 17)] if r == 0 else [] for r in range(4)}), **dumps(entries, 4), "host/dmesg_rank0.log": lines(xid)},
        Label("failed", "hang|crash", ("device_stall", "device_error", "gpu_fell_off_the_bus"), onset=None, culprits=(0,)),
    )  # fmt: skip
    entries = {rank: recorded(12, 1, "nccl:all_reduce" if rank == 0 else "nccl:broadcast") for rank in range(2)}
    yield Made(
        "hang-two-ranks-disagree",
        {**ranks({r: [waited(r, 13, "BROADCAST" if r else "ALLREDUCE")] for r in range(2)}), **dumps(entries, 2)},
        Label("failed", "hang", onset=60, within=2, culprits=()),
    )


def _with_stacks() -> Iterator[Made]:
    yield Made(
        "hang-one-rank-reads-a-slow-shard",
        {**ranks({r: [] if r == 1 else [waited(r)] for r in range(4)}, out={1: [f"{clock(160)} | INFO | rank=1 | reading shard 17 of the data set"]}),
         **_stacks({r: _READS if r == 1 else _WAITS for r in range(4)})},
        Label("failed", "hang", ("slow_storage_read",), onset=60, within=2, culprits=(1,)),
    )  # fmt: skip
    saves = (("write", "storage/nfs.py", 90), ("save_checkpoint", "checkpoint.py", 52), ("<module>", "main.py", 14))
    yield Made(
        "hang-rank-zero-saves-alone",
        {**ranks({r: [] if r == 0 else [waited(r)] for r in range(4)}, out={0: [f"{clock(160)} | INFO | rank=0 | saving checkpoint to /data/out/step_60"]}),
         **_stacks({r: saves if r == 0 else _WAITS for r in range(4)})},
        Label("failed", "hang", ("slow_storage_checkpoint", "rank_conditional_work"), onset=60, within=2, culprits=(0,)),
    )  # fmt: skip


def _with_lines() -> Iterator[Made]:
    says = "CollectiveFingerPrint(SequenceNumber=61, OpType=ALLREDUCE, TensorShape=[{n}], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(device=cuda))"
    mismatch = {
        r: [(f"RuntimeError: Detected mismatch between collectives on ranks. Rank {r} is running collective: {says.format(n=4 if r == 3 else 5)},"
            f" but Rank {0 if r == 3 else 3} is running collective: {says.format(n=5 if r == 3 else 4)}.Collectives differ in the following aspects: \t Tensor shapes: {4 if r == 3 else 5} vs {5 if r == 3 else 4}")]
        for r in range(4)}  # fmt: skip
    yield Made(
        "hang-shapes-differ-detail",
        ranks(mismatch),
        Label("failed", "hang", ("collective_mismatch_size",), onset=60, within=2, culprits=(3,)),
    )
    barrier = [
        "[rank0]: RuntimeError: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 1800000 ms",
    ]
    reached = "[rank{r}]: RuntimeError: Rank {r} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank."
    yield Made(
        "hang-rank-misses-a-barrier",
        ranks({0: barrier, 1: [reached.format(r=1)], 2: [], 3: [reached.format(r=3)]}),
        Label("failed", "hang", ("never_entered", "rank_missed_barrier"), onset=60, within=2, culprits=(2,)),
    )
    closed = "RuntimeError: [/opt/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:2211"
    block = [
        "E0301 10:20:03.120000 4690 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -11) local_rank: 2 (pid: 4702) of binary: /opt/py/bin/python3",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "=" * 60, "main.py FAILED", "-" * 60,
        "Root Cause (first observed failure):", "[0]:", "  time      : 2026-03-01_10:20:02", "  host      : n7", "  rank      : 2 (local_rank: 2)",
        "  exitcode  : -11 (pid: 4702)", "  error_file: <N/A>", "  traceback : Signal 11 (SIGSEGV) received by PID 4702", "=" * 60,
    ]  # fmt: skip
    yield Made(
        "hang-peer-died-of-segv",
        {**ranks({r: [] if r == 2 else [closed] for r in range(4)}), "torchrun.log": lines(block)},
        Label("failed", "crash", ("silent_death_segv", "segmentation_fault"), onset=60, within=2, culprits=(2,)),
    )
    own = traceback(
        "ValueError: sample 8812 has no tokens", MAIN, ("/srv/job/data.py", 71, "collate", "raise ValueError(")
    )
    yield Made(
        "crash-one-rank-others-wait",
        ranks({r: own if r == 1 else [waited(r)] for r in range(4)}),
        Label("failed", "crash", onset=60, within=2, culprits=(1,)),
    )
    yield Made(
        "hang-silent-rank",
        ranks({r: [] if r == 3 else [waited(r)] for r in range(4)}),
        Label("failed", "hang", ("never_entered",), onset=60, within=2, culprits=(3,)),
    )


def _at_the_start() -> Iterator[Made]:
    wait = "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0//cpu//0/3"
    boot = {
        f"logs/rank{r}.log": lines(f"{clock(1)} | INFO | rank={r} | connecting to tcp://n0:29500, world_size=4",
                                   traceback(wait, MAIN, (_C10D, 1710, "init_process_group", "store.wait(keys)")))
        for r in range(3)}  # fmt: skip
    yield Made("hang-at-start-one-rank-missing", boot, Label("failed", "hang", ("init_hang",), culprits=(3,)))


def _one_log() -> Iterator[Made]:
    log = run_log({"loss": falling(120)}, step_s=12)
    watch = [f"{clock(3300)} {waited(0)}", f"{clock(3300)} {waited(5)}"]
    config = "train:\n  lr: 3.0e-4\n  nccl_health_check_interval: 0\n  max_steps: 2000\n"
    yield Made(
        "hang-watchdog-in-one-log",
        {"train.log": lines(start(world=8), log, watch), "config.yaml": config},
        Label("failed", "hang", onset=120, within=2),
    )
    told = f"{clock(1500)} | ERROR | NCCL health check failed at step 120: expected sum 8, got 7"
    yield Made(
        "hang-health-check-fails",
        {"train.log": lines(start(world=8), log, told), "config.yaml": config.replace(": 0", ": 20")},
        Label("failed", "hang", ("partial_participation",), onset=120, within=1),
    )
    limit = "slurmstepd: error: *** JOB 48213 ON node042 CANCELLED AT 2026-03-01T14:00:11 DUE TO TIME LIMIT ***"
    yield Made(
        "hang-silent-until-time-limit",
        {"slurm-48213.out": lines(start(), log, limit)},
        Label("failed", "hang", ("silent_stall",), onset=120, within=2),
    )
    end = [done(120, 1500), f"{clock(1502)} | INFO | closing loaders"]
    yield Made(
        "hang-at-shutdown",
        {"slurm-51.out": lines(start(world=4), log, end,
                               "srun: error: node042: tasks 1-3: Aborted", "srun: error: node042: task 0: Terminated")},
        Label("failed|suspect", "hang", ("shutdown_hang",)),
    )  # fmt: skip
    late = f"[rank2]:[E301 10:52:10.123456789 ProcessGroupNCCL.cpp:685] {waited(2).split('] ', 1)[1]}"
    yield Made(
        "hang-at-shutdown-watchdog",
        {"train.log": lines(start(world=4), log, end, late)},
        Label("failed|suspect", "hang", ("shutdown_hang",)),
    )


def _no_hangs() -> Iterator[Made]:
    log = run_log({"loss": falling(150)}, step_s=10)
    warn = "[rank0]:[W301 10:00:02.1 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 0] using GPU 0 to perform barrier as devices used by this process are currently unknown."
    bye = "[rank0]:[W301 10:30:09.1 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL."
    yield Made(
        "healthy-noisy-exit", {"train.log": lines(start(world=8), warn, log, done(150, 1600), bye)}, Label("healthy")
    )
    log = run_log(
        {"loss": falling(150), "clock": [clock(30 + 10 * at + (900 if at >= 75 else 0)) for at in range(150)]}
    )
    log.insert(75, f"{clock(785)} | INFO | evaluating 40000 documents")
    yield Made("healthy-long-evaluation", {"train.log": lines(start(world=8), log, done(150, 2600))}, Label("healthy"))
    quiet = run_log({"loss": falling(40)}, step_s=10)
    yield Made(
        "cannot-say-log-ends-in-the-middle",
        {"train.log": lines(start(world=2, plan=5000), quiet[:-1], quiet[-1][:31])[:-1], "config.yaml": "max_steps: 5000\nlr: 3.0e-4\n"},
        Label("cannot_say"),
    )  # fmt: skip
    yield Made(
        "cannot-say-only-stacks",
        {**_stacks(dict.fromkeys(range(4), _WAITS))},
        Label("cannot_say"),
    )
    probe = traceback("RuntimeError: DataLoader worker exited", MAIN, STEP)
    restarted = f"{clock(900)} | WARNING | loader failed, starting it again"
    yield Made(
        "healthy-loader-restarted",
        {"train.log": lines(start(), log[:70], probe, restarted, log[70:], done(150, 2600))},
        Label("healthy"),
    )
