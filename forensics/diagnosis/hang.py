"""Who waits for whom, what all ranks last had in common, and when each was last seen: the picture behind a hang."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import polars as pl
from msgspec import Struct

from forensics.analyses.hang.clock import clock_offsets
from forensics.analyses.hang.collectives import Recorded, recorded
from forensics.analyses.hang.complaints import Complaints, complaints
from forensics.analyses.hang.last_seen import Seen, last_seen
from forensics.analyses.hang.stacks import Node, Stack, prefix_tree, stacks
from forensics.analyses.hang.waits import last_common, wait_graph
from forensics.case.errors.exits import exits
from forensics.case.world import world
from forensics.model import Evidence
from forensics.rules.hang.decide import Decision, decision
from forensics.store.run import Run

_EVIDENCE = 12


class Common(Struct, frozen=True):
    """The last collective that all recorded members of a group entered; `site` is `file:line function` or empty."""

    group: str
    seq: int
    op: str
    site: str


class Waiting(Common, frozen=True):
    """Ranks that wait in one operation, and for whom."""

    waiting: tuple[int, ...]
    awaited: tuple[int, ...]


class RankState(Struct, frozen=True):
    """One rank: its last step, time (ISO 8601, the node's own clock) and words, and what it was at."""

    rank: int
    last_step: int | None = None
    last_time: str | None = None
    last_words: str = ""
    place: str = ""
    doing: str = ""
    pending: int | None = None
    exit_code: int | None = None


class Hang(Struct, frozen=True):
    """Everything that `forensics hang` shows; the verdict itself is the triage's."""

    decision: Decision | None
    last_common: Common | None
    waits: tuple[Waiting, ...]
    per_rank: tuple[RankState, ...]
    stacks: tuple[Node, ...]
    clocks: Mapping[str, float]
    collect: tuple[str, ...]
    evidence: tuple[Evidence, ...]


def picture(run: Run) -> Hang:
    """Put together what a run says of its ranks."""
    found = decision(run)
    entry = last_common(run)
    common = Common(entry.key[0], entry.seq, entry.op, entry.site) if entry is not None else None
    every = [e for clue in (found.clues if found else ()) for e in clue.evidence]
    return Hang(
        decision=found,
        last_common=common,
        waits=tuple(Waiting(w.group, w.seq, w.op, w.entry.site, w.waiting, w.awaited) for w in wait_graph(run).waits),
        per_rank=tuple(_states(run)),
        stacks=prefix_tree(stacks(run)),
        clocks=clock_offsets(run),
        collect=tuple(_collect(run)),
        evidence=tuple(dict.fromkeys(every))[:_EVIDENCE],
    )


def _states(run: Run) -> Iterator[RankState]:
    seen, told, held, said = last_seen(run), exits(run).by_rank, recorded(run), complaints(run)
    where = stacks(run)
    for rank in sorted(world(run)):
        last, when = seen.get(rank, Seen(rank)), None
        if last.t_ns is not None:
            when = datetime.fromtimestamp(last.t_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        line = f":{last.line}" if last.line is not None else ""
        yield RankState(
            rank,
            last.step,
            when,
            last.words,
            f"{last.source}{line}" if last.source else "",
            doing=_doing(rank, where.get(rank), held, said),
            pending=len(held.pending.get(rank, ())) if rank in held.ranks else None,
            exit_code=told[rank].code if rank in told else None,
        )


def _doing(rank: int, stack: Stack | None, held: Recorded, said: Complaints) -> str:
    """Say what a rank was at: by its stack, else by its dump, else by what it complained of."""
    if stack is not None and stack.frames and not stack.ended:
        return f"{'waits in' if stack.inside or stack.starting else 'is in'} {stack.frames[0].text}"
    if pending := held.pending.get(rank):
        return f"waits in {pending[0].op} seq {pending[0].seq} of group {pending[0].key[0]}"
    if rank in held.ranks:
        return "waits for nobody"
    if rank in said.own:
        return "failed by itself"
    if rank in said.late:
        return "timed out"
    return "lost a peer" if rank in said.closed else "said nothing"


def _collect(run: Run) -> Iterator[str]:
    """What to switch on so that the next time is decided: the kinds of evidence that are missing here."""
    if not recorded(run).dumps:
        yield "TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 (older: TORCH_NCCL_TRACE_BUFFER_SIZE=2000)"
    elif not recorded(run).rows["site"].is_not_null().any():
        yield "dumps without call sites: keep stack traces on in the flight recorder (pickled dumps, not JSON)"
    if not stacks(run):
        yield "py-spy dump --native --pid PID on every rank while it hangs, or faulthandler.dump_traceback_later(300)"
    error_files = run.scan("events").filter(pl.col("source").str.ends_with("error.json")).head(1).collect()
    if not exits(run).by_rank and error_files.is_empty():
        yield "torchrun --log-dir DIR -r 3 with @record on main (one error file and log per rank)"
    if not last_seen(run):
        yield "one log per rank: srun --label, or torchrun -r 3"
    if complaints(run).late and not recorded(run).dumps:
        yield "TORCH_DISTRIBUTED_DEBUG=DETAIL for one run, if ranks may issue different collectives"
