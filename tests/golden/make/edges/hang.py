"""Jobs of several ranks on either side of what decides a hang: dumps, stacks, logs, exits, restarts, clocks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from make.base import Label, Made, lines

_T0_NS = 1_790_000_000_000_000_000
OPEN = Label(outcome="failed|suspect|cannot_say", shape="hang|crash|none")


def waits_for(*ranks: int, shape: str = "hang", causes: tuple[str, ...] = ()) -> Label:
    """The label of a job that waits for some ranks."""
    return Label(outcome="failed", shape=shape, causes=causes, culprits=ranks)


@dataclass(frozen=True, slots=True)
class Job:
    """What a job left, by rank: words on stdout and stderr, a dump, a stack; and what its launcher printed."""

    out: Mapping[int, Sequence[str]] = field(default_factory=dict)
    err: Mapping[int, Sequence[str]] = field(default_factory=dict)
    dumps: Mapping[int, str] = field(default_factory=dict)
    stacks: Mapping[int, str] = field(default_factory=dict)
    launcher: Sequence[str] = ()
    attempt: int = 0

    def files(self) -> dict[str, str]:
        """As torchrun's `--log-dir` lays them out, dumps and stacks in folders of their own."""
        found: dict[str, str] = {}
        for rank in sorted({*self.out, *self.err}):
            place = f"logs/none_a1b2/attempt_{self.attempt}/{rank}"
            found[f"{place}/stdout.log"] = lines(self.out.get(rank, ())) if self.out.get(rank) else ""
            found[f"{place}/stderr.log"] = lines(self.err.get(rank, ())) if self.err.get(rank) else ""
        found |= {f"fr/trace_rank_{rank}.json": text for rank, text in self.dumps.items()}
        found |= {f"stacks/pyspy_rank{rank}.txt": text for rank, text in self.stacks.items()}
        return found | ({"launch.log": lines(self.launcher)} if self.launcher else {})


class Files(Job):
    """Files as they are."""

    __slots__ = ("_own",)

    def __init__(self, own: dict[str, str]) -> None:
        object.__setattr__(self, "_own", own)

    def files(self) -> dict[str, str]:
        return self._own


def runs() -> Iterator[Made]:
    """Every job."""
    for part in (_absent, _differ, _groups, _sends, _devices, _stacks):
        for name, job, label in part():
            yield Made(f"edge-hang-{name}", job.files(), label)


Jobs = Iterator[tuple[str, Job, Label]]


def steps(rank: int, count: int, begin_s: float = 0.0, first: int = 1) -> list[str]:
    """Lines of training with a clock, a second for each step."""
    found: list[str] = []
    for at in range(count):
        now = begin_s + first + at
        clock = f"10:{int(now) // 60:02d}:{int(now) % 60:02d},{int(1000 * (now % 1)):03d}"
        found.append(f"2026-01-01 {clock} | INFO | rank={rank} | step {first + at}/500 loss {3 / (first + at) + 1:.4f}")
    return found


def watchdog(rank: int, seq: int = 21, op: str = "ALLREDUCE", enqueued: int = 21, completed: int = 20) -> list[str]:
    """What NCCL's watchdog prints of a collective that timed out."""
    tag = f"[rank{rank}]:[E101 10:15:0{rank % 10}.123456789 ProcessGroupNCCL.cpp:685] "
    return [
        f"{tag}[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=512, NumelOut=512, Timeout(ms)=90000) ran for 90042 milliseconds before timing out.",
        f"{tag}[PG ID 0 PG GUID 0(default_pg) Rank {rank}] failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {enqueued}, last completed work: {completed}.",
    ]


@dataclass(frozen=True, slots=True)
class Op:
    """One recorded operation."""

    name: str = "nccl:all_reduce"
    state: str = "completed"
    sizes: tuple[int, ...] = (64, 8)
    dtype: str = "Float"
    group: str = "0"
    seq: int | None = None
    peer_seq: int = 0
    line: int = 88


def done(count: int, **more: object) -> list[Op]:
    """So many operations that ended."""
    return [Op(**more) for _ in range(count)]  # type: ignore[arg-type] # fields of an operation


def open_op(**more: object) -> Op:
    """One that did not end."""
    return Op(state="scheduled", **more)  # type: ignore[arg-type] # fields of an operation


_WORLD = {"0": "default_pg"}


def dump(ops: Sequence[Op], members: Mapping[str, Sequence[int]], status: tuple[int, int] | None = None) -> str:
    """A flight recorder's dump as JSON; `status` are the last enqueued and completed numbers that it tells."""
    counts: dict[str, int] = {}
    entries: list[dict[str, object]] = []
    for number, op in enumerate(ops):
        counts[op.group] = counts.get(op.group, 0) + (not op.peer_seq)
        frames = [
            {
                "name": "all_reduce",
                "filename": "/opt/site-packages/torch/distributed/distributed_c10d.py",
                "line": 2700,
            },
            {"name": "sync_grads", "filename": "/srv/app/loop.py", "line": op.line},
        ]
        entries.append(
            {
                "frames": frames, "record_id": number, "pg_id": int(op.group), "process_group": [op.group, _WORLD.get(op.group, "PIPE")],
                "collective_seq_id": op.seq or counts[op.group], "p2p_seq_id": op.peer_seq, "op_id": number + 1,
                "profiling_name": op.name, "time_created_ns": _T0_NS + number * 1_000_000,
                "input_sizes": [list(op.sizes)], "input_dtypes": [op.dtype], "output_sizes": [list(op.sizes)],
                "output_dtypes": [op.dtype], "state": op.state, "retired": op.state == "completed",
                "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "timeout_ms": 90_000,
                "is_p2p": bool(op.peer_seq),
            }
        )  # fmt: skip
    enqueued, completed = status or (counts.get("0", 0), sum(op.state == "completed" and op.group == "0" for op in ops))
    told = {"last_enqueued_collective": enqueued, "last_started_collective": -1, "last_completed_collective": completed}
    return json.dumps(
        {
            "version": "2.9",
            "pg_config": {g: {"name": g, "desc": _WORLD.get(g, "PIPE"), "ranks": str(list(r))} for g, r in members.items()},
            "nccl_version": "2.26.5", "pg_status": {"0": told}, "entries": entries,
        }
    )  # fmt: skip


def dumped(ranks: int, of: Callable[[int], Sequence[Op] | None], groups: Mapping[str, Sequence[int]] | None = None) -> dict[int, str]:  # fmt: skip
    """The dumps of a job; a rank of which None is given left none."""
    members = groups or {"0": range(ranks)}
    found = {rank: of(rank) for rank in range(ranks)}
    return {
        rank: dump(ops, {name: own for name, own in members.items() if rank in own or name == "0"})
        for rank, ops in found.items()
        if ops is not None
    }


def _absent() -> Jobs:
    """Ranks that did not come to a collective, or that left no dump."""
    for ranks in (2, 3, 4):
        late = ranks - 1
        dumps = dumped(ranks, lambda rank, k=late: done(8) if rank == k else [*done(8), open_op()])
        yield f"one-of-{ranks}-absent", Job(dumps=dumps), waits_for(late, causes=("never_entered",))
        dumps = dumped(ranks, lambda rank, k=late: None if rank == k else [*done(8), open_op()])
        yield f"one-of-{ranks}-without-dump", Job(dumps=dumps), waits_for(late)
    for late in ((1, 2), (1, 2, 3)):
        dumps = dumped(5, lambda rank, k=late: done(8) if rank in k else [*done(8), open_op()])
        yield f"{len(late)}-of-5-absent-from-{late[0]}", Job(dumps=dumps), waits_for(*late)
    dumps = dumped(4, lambda rank: [*done(8 - 2 * (rank == 2)), open_op()])
    yield "one-behind-and-waiting", Job(dumps=dumps), waits_for(2)
    dumps = dumped(4, lambda rank: done(6 if rank == 2 else 7 if rank == 1 else 8) + ([] if rank in {1, 2} else [open_op()]))  # fmt: skip
    yield "two-behind-by-unlike-numbers", Job(dumps=dumps), waits_for(1, 2)
    yield "all-wait", Job(dumps=dumped(4, lambda _: [*done(8), open_op()])), OPEN
    yield "none-waits", Job(dumps=dumped(4, lambda _: done(8))), Label(outcome="healthy|cannot_say")
    for completed in (8, 1 << 60):
        told = {
            rank: dump(
                done(2, seq=8) if rank == 1 else [*done(2, seq=8), open_op(seq=9)],
                {"0": range(3)},
                (8 + (rank != 1), completed - (rank == 1)),
            )
            for rank in range(3)
        }
        yield f"status-that-tells-{completed}", Job(dumps=told), waits_for(1)
    wrapped = dumped(3, lambda rank: done(2, seq=40) if rank == 1 else [*done(2, seq=41), open_op(seq=42)])
    yield "ring-that-wrapped", Job(dumps=wrapped), waits_for(1)
    said = {rank: watchdog(rank, 9, enqueued=9, completed=8) for rank in (0, 1, 3)}
    dumps = dumped(4, lambda rank: done(8) if rank == 2 else [*done(8), open_op()])
    yield "one-absent-with-logs", Job(out={r: steps(r, 8) for r in range(4)}, err={**said, 2: ["reading shard 17"]}, dumps=dumps), waits_for(2)  # fmt: skip


def _differ() -> Jobs:
    """Ranks that came to another operation than the others."""
    others = {
        "op": open_op(name="nccl:broadcast"), "size": open_op(sizes=(64, 9)), "dtype": open_op(dtype="Half"),
        "barrier": open_op(name="nccl:barrier", sizes=()),
    }  # fmt: skip
    for word, other in others.items():
        for ranks in (2, 3):
            dumps = dumped(ranks, lambda rank, o=other: [*done(8), o if rank == 1 else open_op()])
            label = waits_for(1) if ranks > 2 else OPEN
            yield f"{word}-differs-of-{ranks}", Job(dumps=dumps), label
    dumps = dumped(4, lambda rank: [*done(8), open_op(name="nccl:broadcast") if rank > 1 else open_op()])
    yield "two-against-two", Job(dumps=dumps), OPEN
    dumps = dumped(4, lambda rank: [*done(8), *([Op(name="nccl:all_gather")] if rank == 1 else []), open_op()])
    yield "one-issued-an-extra", Job(dumps=dumps), waits_for(1)
    dumps = dumped(4, lambda rank: [*done(8), *([] if rank == 1 else [Op(name="nccl:all_gather")]), open_op()])
    yield "one-skipped-one", Job(dumps=dumps), waits_for(1)
    dumps = dumped(3, lambda rank: [*done(8), Op(name="nccl:broadcast", sizes=(8, rank)), open_op()])
    yield "broadcast-sizes-may-differ", Job(dumps=dumps), OPEN
    for mine in (7, 8, 9):
        dumps = dumped(3, lambda rank: [*done(8), open_op(sizes=(64, 9)) if rank == 1 else open_op()])
        out = {rank: steps(rank, mine if rank == 1 else 8) for rank in range(3)}
        yield f"size-differs-at-step-{mine}", Job(out=out, dumps=dumps), waits_for(1)


def _groups() -> Jobs:
    """Groups of some ranks only."""
    parts = {"0": range(4), "1": (0, 1), "2": (2, 3)}

    def of(rank: int, late: int) -> list[Op]:
        own = "1" if rank < 2 else "2"
        return [*done(4), *done(3, group=own)] + ([] if rank == late else [open_op(group=own if rank // 2 == late // 2 else "0")])  # fmt: skip

    for late in (1, 2):
        yield f"group-of-two-waits-for-{late}", Job(dumps=dumped(4, lambda rank, k=late: of(rank, k), parts)), waits_for(late)  # fmt: skip
    crossed = dumped(4, lambda rank: [*done(4), open_op(group="1" if rank == 0 else "0" if rank == 1 else "2" if rank == 2 else "0")], parts)  # fmt: skip
    yield "groups-that-wait-for-each-other", Job(dumps=crossed), OPEN


def _sends() -> Jobs:
    """Sends and receives: a peer that did not post its side, and a ring in which all wait."""
    for missing in (True, False):
        dumps = dumped(
            3,
            lambda rank, m=missing: [
                *done(4),
                *([open_op(name="nccl:send 0->1", peer_seq=5, group="1")] if rank == 0 else []),
                *([open_op(name="nccl:recv 1<-0", peer_seq=5, group="1")] if rank == 1 and not m else []),
            ],
            {"0": range(3), "1": range(3)},
        )
        yield f"send-{'without' if missing else 'with'}-receive", Job(dumps=dumps), waits_for(1) if missing else OPEN
    ring = dumped(3, lambda rank: [*done(4), open_op(name=f"nccl:recv {rank}<-{(rank + 2) % 3}", peer_seq=5, group="1")], {"0": range(3), "1": range(3)})  # fmt: skip
    yield "receives-in-a-ring", Job(dumps=ring), OPEN


def _devices() -> Jobs:
    """A rank that holds pending what all others completed."""
    for count in (1, 2):
        dumps = dumped(
            4, lambda rank, c=count: done(8) if rank != 2 else [*done(8 - c), *(open_op() for _ in range(c))]
        )
        yield f"device-behind-by-{count}", Job(dumps=dumps), waits_for(2)
    gloo = dumped(4, lambda rank: done(8, name="gloo:all_reduce") if rank != 2 else [*done(7, name="gloo:all_reduce"), open_op(name="gloo:all_reduce")])  # fmt: skip
    yield "gloo-behind-by-1", Job(dumps=gloo), OPEN


def stack(*frames: str, state: str = "idle") -> str:
    """A stack as py-spy prints it, innermost frame first."""
    head = ["Process 4711: python3 -u loop.py", "Python v3.11.9 (/opt/py/bin/python3.11)", "", f'Thread 4711 ({state}): "MainThread"']  # fmt: skip
    return lines(head, [f"    {frame}" for frame in frames])


_REDUCE = (
    "all_reduce (torch/distributed/distributed_c10d.py:2700)",
    "sync_grads (loop.py:88)",
    "<module> (loop.py:201)",
)


def _stacks() -> Jobs:
    """Stacks of all ranks, one of which is at something else."""
    works = {
        "loader": ("read_shard (dataset.py:51)", "next_batch (loop.py:60)", "<module> (loop.py:201)"),
        "save": ("save_checkpoint (checkpoint.py:12)", "train (loop.py:70)", "<module> (loop.py:201)"),
        "evaluation": ("generate (eval.py:33)", "evaluate (loop.py:140)", "<module> (loop.py:201)"),
        "sleep": ("sleep (loop.py:61)", "<module> (loop.py:201)"),
        "start": ("init_process_group (torch/distributed/distributed_c10d.py:1300)", "<module> (loop.py:9)"),
        "end": ("_shutdown (threading.py:1590)",),
    }
    for word, frames in works.items():
        for ranks in (2, 3):
            own = {rank: stack(*(frames if rank == 1 else _REDUCE)) for rank in range(ranks)}
            yield f"stack-at-{word}-of-{ranks}", Job(stacks=own), waits_for(1) if ranks > 2 else OPEN
    read = ("recv_into (socket.py:706)", "read (site-packages/urllib3/response.py:9)", "fetch (dataset.py:51)", "<module> (loop.py:201)")  # fmt: skip
    yield "stack-in-a-download", Job(stacks={rank: stack(*(read if rank == 1 else _REDUCE)) for rank in range(4)}), waits_for(1)  # fmt: skip
    deep = (*(f"inner_{at} (kernels.py:{at})" for at in range(30)), *works["loader"])
    own = ("step (kernels.py:3)", *works["loader"])
    yield "stack-below-the-loader", Job(stacks={rank: stack(*(own if rank == 1 else _REDUCE)) for rank in range(4)}), waits_for(1)  # fmt: skip
    yield "stack-deep", Job(stacks={rank: stack(*(deep if rank == 1 else _REDUCE)) for rank in range(4)}), waits_for(1)
    own = {rank: stack(*(works["sleep"] if rank == 1 else _REDUCE), state="active+gil") for rank in range(4)}
    yield "stack-active", Job(stacks=own), waits_for(1)
    yield "stacks-alike", Job(stacks={rank: stack(*_REDUCE) for rank in range(4)}), OPEN
    own = {rank: stack(*(works["loader"] if rank < 2 else _REDUCE)) for rank in range(4)}
    yield "stacks-two-and-two", Job(stacks=own), OPEN
    own = {rank: stack(*(works["loader"] if rank == 1 else _REDUCE)) for rank in range(4)}
    dumps = dumped(4, lambda rank: done(8) if rank == 1 else [*done(8), open_op()])
    yield "stack-and-dump-agree", Job(stacks=own, dumps=dumps), waits_for(1)
    dumps = dumped(4, lambda rank: done(8) if rank == 2 else [*done(8), open_op()])
    yield "stack-and-dump-disagree", Job(stacks=own, dumps=dumps), OPEN
    send = ("recv (torch/distributed/distributed_c10d.py:2300)", "pipe_step (loop.py:90)", "<module> (loop.py:201)")
    yield "stack-in-a-receive", Job(stacks={rank: stack(*(send if rank == 1 else _REDUCE)) for rank in range(3)}), OPEN
