"""Device lag: a rank that holds operations pending which its peers completed; its host went on, its device stopped."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from forensics.analyses.hang.collectives import Entry, recorded
from forensics.store.run import Run


class Lag(Struct, frozen=True):
    """One rank, the operations that only it did not finish (count), and the first of them."""

    rank: int
    count: int
    first: Entry


def device_lags(run: Run) -> Mapping[int, Lag]:
    """Give the ranks whose device is behind that of their peers; gloo has no device."""
    told = recorded(run)
    found: dict[int, Lag] = {}
    for rank, entries in told.pending.items():
        behind = [e for e in entries if e.peer is None and not e.gloo and _done_elsewhere(told.completed, e)]
        if behind:
            found[rank] = Lag(rank, len(behind), behind[0])
    return found


def _done_elsewhere(completed: Mapping[tuple[str, tuple[int, ...]], Mapping[int, int]], entry: Entry) -> bool:
    ends = completed.get(entry.key, {})
    return any(seq >= entry.seq for rank, seq in ends.items() if rank != entry.rank)
