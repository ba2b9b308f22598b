"""Everything that a run says of its memory, for `forensics memory`: series, ranks, snapshots, errors, and a diff."""

from __future__ import annotations

from msgspec import Struct

from forensics.analyses.memory.oom_messages import OomMessage, oom_messages
from forensics.analyses.memory.ranks import Imbalance, imbalances
from forensics.analyses.memory.series import Series, series_of
from forensics.analyses.memory.verdict import Reading, reading_of
from forensics.analyses.snapshots.per_device import Growth, Snapshot, grown, snapshots
from forensics.store.run import Run


class Change(Struct, frozen=True):
    """The worst value of one metric of one rank in two runs, in its unit."""

    metric: str
    rank: int | None
    unit: str
    base: float
    cand: float


class Diff(Struct, frozen=True):
    """What two runs or snapshots differ in: peaks of series, and what each stack holds more."""

    base: str
    series: tuple[Change, ...]
    grown: tuple[Growth, ...]


class Memory(Struct, frozen=True):
    """The memory of one run; each series stands with its reading."""

    run: str
    series: tuple[tuple[Series, Reading], ...]
    ranks: tuple[Imbalance, ...]
    snapshots: tuple[Snapshot, ...]
    oom: tuple[OomMessage, ...]
    diff: Diff | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing about memory was found."""
        return not (self.series or self.snapshots or self.oom)

    @property
    def bad(self) -> bool:
        """Whether memory ran out, grows, or leaks by a snapshot."""
        fatal = any(not m.survived for m in self.oom)
        return fatal or any(s.form.grows for s, _ in self.series) or any(s.leaks for s in self.snapshots)


def memory_of(run: Run, base: Run | None = None) -> Memory:
    """Collect what a run says of its memory; with `base` also what is more than there."""
    found = tuple((one, reading_of(one)) for one in series_of(run))
    diff = None if base is None else _diff(base, run)
    return Memory(run.name, found, imbalances(run), snapshots(run), oom_messages(run), diff)


def _diff(base: Run, cand: Run) -> Diff:
    before, after = _peaks(base), _peaks(cand)
    both = [key for key in after if key in before]
    changes = [Change(key[0], key[1], key[2], before[key], after[key]) for key in both]
    old = {(s.rank, s.device): s for s in snapshots(base)}
    pairs = [(old[s.rank, s.device], s) for s in snapshots(cand) if (s.rank, s.device) in old]
    lone = [(a, b) for a in snapshots(base)[:1] for b in snapshots(cand)[:1]] if not pairs else []
    more = [growth for a, b in pairs or lone for growth in grown(a, b)]
    return Diff(base.name, tuple(changes), tuple(sorted(more, key=lambda g: -abs(g.bytes))))


def _peaks(run: Run) -> dict[tuple[str, int | None, str], float]:
    """The worst value of each metric and rank over all attempts."""
    found: dict[tuple[str, int | None, str], float] = {}
    for one in series_of(run):
        key = (one.name, one.rank, one.meaning.unit)
        worse = min if one.meaning.falls else max
        found[key] = worse(found.get(key, one.peak), one.peak)
    return found
