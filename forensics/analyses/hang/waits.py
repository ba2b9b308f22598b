"""Who waits for whom, over all process groups at once: sinks are waited for and wait for nobody; else there is a cycle.

A rank waits for a member of a group that has not enqueued what it holds pending there, or for the peer of a send or a
receive that has not posted its side. A rank whose watchdog found it waiting in a collective had entered it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl
from msgspec import Struct

from forensics.analyses.hang.collectives import Entry, Key, Recorded, entry_of, recorded
from forensics.analyses.hang.complaints import complaints
from forensics.store.run import Run, derived


class Wait(Struct, frozen=True):
    """Ranks that wait in one operation, and the ranks that they wait for."""

    group: str
    seq: int
    op: str
    waiting: tuple[int, ...]
    awaited: tuple[int, ...]
    entry: Entry


class WaitGraph(Struct, frozen=True):
    """All waits; `sinks` wait for nobody, `cyclic` says that everybody who is waited for waits too."""

    waits: tuple[Wait, ...]
    sinks: tuple[int, ...]
    cyclic: bool


@derived
def wait_graph(run: Run) -> WaitGraph:
    """Build the wait-for graph of a run's dumps."""
    told = recorded(run)
    waits = (*_collective_waits(told), *_p2p_waits(told))
    waiting = {rank for wait in waits for rank in wait.waiting}
    awaited = {rank for wait in waits for rank in wait.awaited}
    sinks = tuple(sorted(awaited - waiting - told.timed_out.keys() - _late_by_log(run, told)))
    return WaitGraph(waits, sinks, bool(awaited) and awaited <= waiting)


def _late_by_log(run: Run, told: Recorded) -> frozenset[int]:
    """Give the ranks that complain of a time-out and left nothing else to judge them by."""
    recorded_too = {rank for reached in told.enqueued.values() for rank in reached}
    return frozenset(complaints(run).late) - recorded_too


def _collective_waits(told: Recorded) -> Iterator[Wait]:
    """For each operation that some rank holds pending: the members that did not enter it."""
    held: dict[tuple[Key, int, str], list[Entry]] = {}
    for entries in told.pending.values():
        last: dict[Key, Entry] = {}
        for entry in entries:
            if entry.peer is None and (entry.key not in last or entry.seq > last[entry.key].seq):
                last[entry.key] = entry
        for entry in last.values():
            held.setdefault((entry.key, entry.seq, entry.op), []).append(entry)
    for (key, seq, op), entries in held.items():
        reached: Mapping[int, int] = told.enqueued.get(key, {})
        absent = tuple(
            rank for rank in key[1] if reached.get(rank, -1) < seq and seq not in told.timed_out.get(rank, ())
        )
        if absent:
            ranks = tuple(sorted(entry.rank for entry in entries))
            yield Wait(key[0], seq, op, ranks, absent, entries[0])


def _p2p_waits(told: Recorded) -> Iterator[Wait]:
    pending = [entry for entries in told.pending.values() for entry in entries]
    posted: dict[tuple[int, int | None, Key], set[str]] = {}
    for entry in pending:
        posted.setdefault((entry.rank, entry.peer, entry.key), set()).add(entry.op)
    seen: set[tuple[int, int]] = set()
    for entry in pending:
        rank, peer = entry.rank, entry.peer
        if peer is None or (rank, peer) in seen or posted.get((peer, rank, entry.key), set()) - {entry.op}:
            continue
        seen.add((rank, peer))
        yield Wait(entry.key[0], entry.p2p_seq or entry.seq, entry.op, (rank,), (peer,), entry)


def last_common(run: Run) -> Entry | None:
    """Give the last operation that every recorded member of a group had entered, of the largest stalled group."""
    told = recorded(run)
    whole = [key for key, reached in told.enqueued.items() if told.ranks & set(key[1]) <= reached.keys()]
    stalled = {entry.key for entries in told.pending.values() for entry in entries if entry.peer is None}
    common = [_at(told, key, min(told.enqueued[key].values())) for key in whole if told.enqueued[key]]
    return max(common, key=lambda e: (bool(e.op), e.key in stalled, len(e.key[1]), e.key[0]), default=None)


def _at(told: Recorded, key: Key, seq: int) -> Entry:
    rows = told.rows.filter((told.rows["group"] == key[0]) & (told.rows["seq"] == seq) & ~told.rows["p2p"])
    pick = rows.sort("site", nulls_last=True).head(1).to_dicts()
    if not pick:
        return Entry(-1, key, seq, "", "", "", done=True, source="", record=0)
    row = pick[0]
    return Entry(
        row["rank"], key, seq, row["op"] or "", row["in_sizes"] or "", row["dtype"] or "", not row["pending"],
        row["source"], row["record"], row["site"] or "",
    )  # fmt: skip


def newest(run: Run) -> tuple[Entry, ...]:
    """Give the last recorded collective of each rank."""
    told = recorded(run)
    rows = told.rows.filter(~told.rows["p2p"]).sort("record").group_by("rank", maintain_order=True).tail(1)
    return tuple(entry_of(row, (row["group"], ())) for row in rows.sort("rank").to_dicts())


# Device lag: a rank that holds operations pending which its peers completed. Its host went on, its device stopped.


class Lag(Struct, frozen=True):
    """One rank, the operations that only it did not finish (count), and the first of them."""

    rank: int
    count: int
    first: Entry


def device_lags(run: Run) -> Mapping[int, Lag]:
    """Give the ranks whose device is behind their peers'; gloo has no device."""
    told = recorded(run)
    found: dict[int, Lag] = {}
    for rank, entries in told.pending.items():
        behind = [e for e in entries if e.peer is None and not e.gloo and _done_elsewhere(told.completed, e)]
        if behind:
            found[rank] = Lag(rank, len(behind), behind[0])
    return found


def never_begun(run: Run) -> Mapping[int, Entry]:
    """Give the ranks whose device did not begin the operation in which their peers' devices wait, and that operation.

    Only ranks whose own dump notes when a device begins (TORCH_NCCL_ENABLE_TIMING=1): else all are `scheduled`.
    """
    told = recorded(run)
    notes = told.rows.filter(pl.col("started_ns").is_not_null() | (pl.col("state") == "started"))["rank"].unique()
    held = {
        (rank, entry.key, entry.seq): entry
        for rank, entries in told.pending.items()
        for entry in entries
        if entry.peer is None
    }
    begun = {(key, seq) for (_, key, seq), entry in held.items() if entry.begun}
    late = ((rank, entry) for (rank, *at), entry in held.items() if tuple(at) in begun and not entry.begun)
    return {rank: entry for rank, entry in late if rank in set(notes)}


def _done_elsewhere(completed: Mapping[Key, Mapping[int, int]], entry: Entry) -> bool:
    ends = completed.get(entry.key, {})
    return any(seq >= entry.seq for rank, seq in ends.items() if rank != entry.rank)
