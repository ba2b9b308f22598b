"""More hangs: clues that contradict each other, several culprits, rings, exits, other libraries, lost nodes, restarts."""

from __future__ import annotations

from collections.abc import Iterator

from make._logs import MAIN, STEP, clock, done, falling, fixtures, run_log, start, traceback, waited
from make.base import Label, Made, lines
from make.rules.hang import dumps, ranks, recorded, stack

_WAITS = (
    ("all_reduce", "torch/distributed/distributed_c10d.py", 2810),
    ("sync_grads", "loop.py", 88),
    ("<module>", "main.py", 12),
)
_BUSY = (("tokenize", "data/text.py", 61), ("prepare", "main.py", 31), ("<module>", "main.py", 10))


def runs() -> Iterator[Made]:
    """Hangs in which the weights of clues decide, and those that other words tell of."""
    yield from _weighed()
    yield from _recorded()
    yield from _ended()
    yield from _worded()


def _hang(*culprits: int, causes: tuple[str, ...] = (), shape: str = "hang") -> Label:
    return Label("failed", shape, causes, onset=60, within=2, culprits=culprits)


def _weighed() -> Iterator[Made]:
    ends = {r: [] if r in {1, 5} else [waited(r)] for r in range(8)}
    yield Made("hang-two-silent-ranks-of-eight", ranks(ends), _hang(1, 5))
    words = {1: [f"{clock(160)} | INFO | rank=1 | tokenizing the next file"]}
    stacks = {f"stacks/pyspy_rank{r}.txt": stack(r, _BUSY if r == 1 else _WAITS) for r in (0, 1, 2)}
    yield Made(
        "hang-silent-and-busy-in-a-stack",
        {**ranks(ends | {5: [waited(5)]}, out=words), **stacks},
        _hang(1, causes=("rank_conditional_work", "host_stall_loop")),
    )
    yield Made(
        "hang-one-stack-in-a-collective",
        {**ranks({0: []}), "stacks/pyspy_rank0.txt": stack(0, _WAITS)},
        Label("suspect", "hang", ("waits_in_collective",), onset=60, within=2),
    )
    entries = {r: recorded(20, 0 if r == 5 else 1) for r in range(8)}
    yield Made("hang-dumps-name-one-logs-two", {**ranks(ends), **dumps(entries, 8)}, _hang(5))
    half = {r: [waited(r)] if r < 2 else [] for r in range(4)}
    yield Made("hang-half-of-the-ranks-silent", ranks(half), Label("failed", "hang", onset=60, within=2))
    everyone = {r: [waited(r)] for r in range(4)}
    yield Made("hang-every-rank-complains", ranks(everyone), Label("failed", "hang", onset=60, within=2, culprits=()))


def _recorded() -> Iterator[Made]:
    make = fixtures("hang_files")
    ring = {}
    for rank in range(3):
        sends = make.entry(
            20,
            f"nccl:recv {rank}<-{(rank + 1) % 3}",
            ("0", "default_pg"),
            20,
            is_p2p=True,
            p2p_seq_id=3,
            state="scheduled",
            retired=False,
        )
        ring[rank] = [*recorded(20, 0), sends]
    yield Made(
        "hang-ring-of-receives",
        {**ranks({r: [waited(r, 21, "RECV")] for r in range(3)}), **dumps(ring, 3)},
        Label("failed", "hang", onset=60, within=2, culprits=()),
    )
    shapes = {r: recorded(20, 1, input_sizes=[[64, 9 if r == 0 else 8]]) for r in range(4)}
    yield Made(
        "hang-one-rank-sends-another-shape",
        {**ranks({r: [waited(r, 21)] for r in range(4)}), **dumps(shapes, 4)},
        _hang(0, causes=("collective_mismatch_size",)),
    )
    types = {r: recorded(20, 1, input_dtypes=["BFloat16" if r == 3 else "Float"]) for r in range(4)}
    yield Made(
        "hang-one-rank-sends-another-type",
        {**ranks({r: [waited(r, 21)] for r in range(4)}), **dumps(types, 4)},
        _hang(3, causes=("collective_mismatch_dtype",)),
    )
    early = {r: recorded(20, 1, "nccl:barrier" if r == 1 else "nccl:all_reduce") for r in range(4)}
    yield Made(
        "hang-one-loop-ended-earlier", {**ranks({r: [waited(r, 21)] for r in range(4)}), **dumps(early, 4)}, _hang(1)
    )
    alone = {r: recorded(20, 0 if r == 2 else 1) for r in range(4)}
    yield Made("hang-only-dumps", dumps(alone, 4), Label("failed", "hang", culprits=(2,)))
    ended = {r: recorded(20, 0) for r in range(4)}
    log = lines(start(world=4), run_log({"loss": falling(60)}), done(60))
    yield Made("healthy-dumps-of-a-finished-run", {"train.log": log, **dumps(ended, 4)}, Label("healthy"))


def _ended() -> Iterator[Made]:
    closed = "RuntimeError: [/opt/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:2211"
    report = "E0301 10:20:03.120000 4690 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {code}) local_rank: {rank} (pid: 470{rank}) of binary: /opt/py/bin/python3"
    for code, name, causes in (
        (-9, "sigkill", ("silent_death_sigkill",)),
        (-7, "sigbus", ("silent_death_sigbus", "shared_memory_exhausted")),
        (1, "one", ("exit_nonzero",)),
    ):
        files = ranks({r: [] if r == 2 else [closed] for r in range(4)})
        yield Made(
            f"hang-peer-ended-with-{name}",
            files | {"torchrun.log": lines(report.format(code=code, rank=2))},
            _hang(2, shape="crash|oom|hang", causes=causes),
        )
    forced = "W0301 10:31:00.1 4690 torch/distributed/elastic/multiprocessing/api.py:900] Unable to shutdown process 4703 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL"
    files = ranks({r: [] if r == 3 else [waited(r)] for r in range(4)})
    yield Made(
        "hang-worker-had-to-be-forced",
        files | {"torchrun.log": lines(forced, report.format(code=-9, rank=3))},
        _hang(3),
    )
    everyone = ranks({r: traceback("ValueError: bad config of the optimizer", MAIN, STEP) for r in range(4)})
    yield Made("crash-all-ranks-alike", everyone, Label("failed", "crash", onset=60, within=2))
    left = {1: [f"{clock(160)} | INFO | rank=1 | nothing left to do, leaving"]}
    yield Made(
        "hang-one-rank-left-early",
        ranks({r: [] if r == 1 else [closed] for r in range(4)}, out=left),
        _hang(1, shape="crash|hang"),
    )


def _worded() -> Iterator[Made]:
    log = run_log({"loss": falling(60)})
    horovod = ["[2026-03-01 10:08:01.1: W /horovod/common/stall_inspector.cc:107] One or more tensors were submitted to be reduced by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.",
               "Stalled ranks:", "2: [allreduce.grads.17]", "[missing ranks: 2]"]  # fmt: skip
    yield Made("hang-horovod-names-a-rank", {"train.log": lines(start(world=4), log, horovod)}, _hang(2))
    mismatch = (
        "RuntimeError: [enforce fail at /opt/gloo/transport/tcp/pair.cc:616] op.preamble.length <= op.nbytes. 40 vs 20"
    )
    files = ranks(
        {
            r: [mismatch]
            if r == 1
            else ["RuntimeError: [/opt/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:21"]
            for r in range(2)
        }
    )
    yield Made("hang-gloo-sizes-differ", files, Label("failed", "hang|crash", onset=60, within=2))
    ib = [
        f"n{n}:4711:4790 [0] transport/net_ib.cc:1340 NCCL WARN NET/IB: Got completion from peer 10.0.0.9<4791> with status=12 opcode=0 len=0 vendor err 129"
        for n in (1, 2, 3)
    ]
    yield Made(
        "hang-fabric-retries-ran-out",
        {"train.log": lines(start(world=4), log, ib, waited(0), waited(1))},
        Label("failed", "hang", ("fabric_fault",), onset=60, within=2),
    )
    gil = "[rank3]:[E301 10:20:00.1 ProcessGroupNCCL.cpp:1500] [Rank 3] Could not acquire GIL within 300000 ms on exit, possible GIL induced hang"
    yield Made("hang-interpreter-lock-held", ranks({r: [gil] if r == 3 else [waited(r)] for r in range(4)}), _hang(3))
    nodes = {
        f"node{n}/rank{8 * n + r}.log": lines(
            run_log({"loss": falling(40, seed=r)}, f"rank={8 * n + r} step {{step}} loss {{loss:.4f}}"),
            [] if n == 1 else [waited(8 * n + r)],
        )
        for n in range(3)
        for r in range(8)
    }
    yield Made(
        "hang-a-whole-node-is-lost",
        nodes,
        Label("failed", "hang|crash", onset=40, within=2, culprits=tuple(range(8, 16))),
    )
    port = traceback(
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        MAIN,
    )
    yield Made(
        "crash-port-in-use", {"train.log": lines(start(world=4), port)}, Label("failed", "crash", ("port_in_use",))
    )
    loader = traceback("RuntimeError: DataLoader timed out after 120 seconds", MAIN, STEP)
    yield Made(
        "hang-loader-timed-out",
        {"train.log": lines(start(), log, loader)},
        Label("failed", "hang|crash", onset=60, within=2),
    )
    desync = "[rank0]:[E301 10:15:00.2 ProcessGroupNCCL.cpp:700]   - [0, 1, 3] joined but didn't finish collective #61 (count from 1)\n     [2] finished collective #60, but didn't join collective #61 (count from 1)"
    yield Made(
        "hang-desync-report-names-a-rank",
        ranks({r: [waited(r, 61), *([desync] if r == 0 else [])] if r != 2 else [] for r in range(4)}),
        _hang(2),
    )
