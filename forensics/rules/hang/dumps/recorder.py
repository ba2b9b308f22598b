"""What dumps of a flight recorder say of ranks: whom they wait for, who left none, who is stuck, who is behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from forensics.analyses.hang.collectives import recorded, timed_out_in
from forensics.analyses.hang.complaints import complaints
from forensics.analyses.hang.differs import first_difference
from forensics.analyses.hang.stacks import stacks
from forensics.analyses.hang.waits import Wait, WaitGraph, device_lags, never_begun, wait_graph
from forensics.case.rank_spans import FEWEST_THAT_VOTE, ranks_do, ranks_text
from forensics.case.world import world
from forensics.rules._errors import of_failure
from forensics.rules.hang.clue import Clue, gives_clues, of_entry, of_stack
from forensics.rules.kit import Evidence, Locator, Run, Struct

_SHOWN = 4


@gives_clues("HNG004 waited-on-by-all")
def waited_on(run: Run) -> Iterator[Clue]:
    """Sinks of the wait-for graph, or its cycle; none where ranks issued different operations, which come first."""
    graph = wait_graph(run)
    if not graph.waits or first_difference(run) is not None:
        return
    if graph.sinks:
        named = [w for w in graph.waits if set(w.awaited) & set(graph.sinks)]
        place = f"{named[0].op} seq {named[0].seq} of group {named[0].group}"
        why = f"{ranks_do(graph.sinks, 'wait for nobody')} and never entered {place}"
        yield Clue(graph.sinks, "never_entered", 5, "recorder", why, _proof(named))
    elif graph.cyclic:
        yield _cycle(graph)


def _proof(waits: list[Wait]) -> tuple[Evidence, ...]:
    return tuple(of_entry(wait.entry) for wait in waits[:_SHOWN])


def _cycle(graph: WaitGraph) -> Clue:
    """Name the smaller side of a cycle, when there is one."""
    sides: dict[tuple[str, int], set[int]] = {}
    for wait in graph.waits:
        sides.setdefault((wait.group, wait.seq), set()).update(wait.waiting)
    order = sorted(sides.values(), key=len)
    waits = list(graph.waits)
    everyone = tuple(sorted({r for w in waits for r in w.waiting}))
    if all(w.entry.peer is not None for w in waits):
        why = "sends and receives wait for each other in a ring"
        return Clue((), "p2p_cycle", 5, "recorder", why, _proof(waits), everyone)
    if len(order) > 1 and len(order[0]) < len(order[-1]):
        few = tuple(sorted(order[0]))
        why = f"{ranks_text(few)} used the process groups in another order than the others"
        return Clue(few, "pg_order_deadlock", 4, "recorder", why, _proof(waits))
    why = "ranks wait for each other over several process groups, in equal numbers"
    return Clue((), "pg_order_deadlock", 4, "recorder", why, _proof(waits), everyone)


@gives_clues("HNG007 missing-dump")
def missing_dump(run: Run) -> Iterator[Clue]:
    """Ranks without a dump that did not complain either."""
    told = recorded(run)
    if not told.dumps:
        return
    everyone = world(run)
    best = max(told.families.values(), key=len)
    said = complaints(run)
    missing = everyone - best - said.victims - frozenset(said.own) - told.ranks
    if not missing or len(best) * 2 <= len(everyone):
        return
    alive = {r: s for r, s in stacks(run).items() if r in missing}
    source = min(s for r, s in told.dumps.items() if r in best)
    words = f"{ranks_do(sorted(best), 'report their collectives')}, {ranks_do(sorted(missing), 'do not')}"
    there = Evidence(source, Locator(), words)
    # a thread that py-spy saw idle waits without the interpreter's lock
    stalled = {rank for rank, stack in alive.items() if "idle" not in stack.state}
    dead = missing - stalled
    no_dump = (dead, "no_dump", "left no record of a collective")
    stall = (stalled, "host_stall_gil", "alive, yet wrote no dump")
    for group, cause, how in (no_dump, stall):
        if group:
            ranks = tuple(sorted(group))
            proof = (there, *(of_stack(alive[r]) for r in ranks if r in alive))
            yield Clue(ranks, cause, 3, "recorder", f"{ranks_text(ranks)} {how}", proof[:4])


class DeviceStopped(Struct, frozen=True):
    """Thresholds of HNG006: fewest lagging operations, and the share of the worst rank's count that also counts."""

    fewest: int = 2
    share: float = 0.5


@gives_clues("HNG006 device-stopped", config=DeviceStopped)
def device_stopped(run: Run) -> Iterator[Clue]:
    """Ranks that hold pending what their peers completed, or whose device did not begin what their peers' did."""
    cfg = run.threshold(DeviceStopped)
    lags = device_lags(run)
    most = max((lag.count for lag in lags.values()), default=0)
    bad = sorted(r for r, lag in lags.items() if lag.count >= max(cfg.fewest, cfg.share * most))
    unbegun = never_begun(run)
    few = len(recorded(run).ranks) // 2
    if not 0 < len(bad or unbegun) <= few or first_difference(run) is not None:
        return
    if not bad:
        ranks = tuple(sorted(unbegun))
        held = unbegun[ranks[0]].words
        why = ranks_do(ranks, f"hold {held}, which the device never began; the other devices wait in it")
        yield Clue(ranks, "device_stall", 6, "recorder", why, tuple(of_entry(unbegun[r]) for r in ranks[:_SHOWN]))
        return
    counts = ", ".join(f"{lags[r].count} on rank {r}" for r in bad[:_SHOWN])
    why = ranks_do(bad, f"have unfinished collectives that their peers completed ({counts})")
    yield Clue(tuple(bad), "device_stall", 6, "recorder", why, tuple(of_entry(lags[r].first) for r in bad[:_SHOWN]))


@gives_clues("HNG021 behind-in-order")
def behind(run: Run) -> Iterator[Clue]:
    """The ranks whose time-out has a smaller number than most ranks' time-outs."""
    told, late = recorded(run), complaints(run).late
    groups = {entry.key for entries in told.pending.values() for entry in entries}
    named = {rank: min(entry.seq for entry in entries) for rank, entries in told.pending.items() if entries}
    if len(groups) == 1 and late.keys() <= named.keys():
        waits, weight, where = named, 5.0, f" of group {next(iter(groups))[0]}"
    else:
        waits, weight, where = {rank: min(seqs) for rank, seqs in told.timed_out.items() if seqs}, 3.0, ""
    waits = {rank: seq for rank, seq in waits.items() if rank in late}
    found = _behind(waits)
    if found is None:
        return
    ranks, most = found
    at = sorted({waits[rank] for rank in ranks})
    why = (
        f"{ranks_do(ranks, 'wait')} in collective {', '.join(map(str, at))}{where}, while "
        f"{ranks_text(sorted(waits.keys() - set(ranks)))} wait in {most}"
    )
    first = sorted(waits, key=lambda rank: (rank not in ranks, rank))[:_SHOWN]
    cause = "uneven_data" if _ended(timed_out_in(run), ranks, at, most) else "never_entered"
    yield Clue(ranks, cause, weight, "log", why, tuple(of_failure(late[rank]) for rank in first))


def _ended(ops: Mapping[int, Mapping[int, str]], ranks: Sequence[int], at: Sequence[int], most: int) -> bool:
    """Whether the ranks behind wait in a barrier and the others do not: their loops ended earlier."""
    mine = {op for seq in at for rank, op in ops.get(seq, {}).items() if rank in ranks}
    return bool(mine) and all("barrier" in op for op in mine) and not any("barrier" in o for o in ops[most].values())


def _behind(waits: Mapping[int, int]) -> tuple[tuple[int, ...], int] | None:
    """Give the ranks before the number in which most ranks wait, and that number; None where no rank is before it."""
    if len(waits) < FEWEST_THAT_VOTE:
        return None
    most, count = Counter(waits.values()).most_common(1)[0]
    ranks = tuple(sorted(rank for rank, seq in waits.items() if seq < most))
    return (ranks, most) if ranks and count * 2 > len(waits) else None
