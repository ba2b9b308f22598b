"""How unevenly memory is spread over ranks: for each metric the level of each rank, and the rank with the highest."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from forensics.analyses.memory.series import Series, series_of
from forensics.stats.spread import median_of
from forensics.store.run import Run, derived

_FEWEST = 2


class Imbalance(Struct, frozen=True):
    """Levels of one metric by rank (the worst value of its last attempt), with the highest and the lowest series."""

    name: str
    levels: Mapping[int, float]
    top: Series
    lowest: Series
    median: float

    @property
    def ratio(self) -> float:
        """The highest level over the median of all ranks."""
        return self.top.peak / self.median if self.median > 0 else 1.0


@derived
def imbalances(run: Run) -> tuple[Imbalance, ...]:
    """Every metric in GiB that two ranks or more print, the most uneven first."""
    groups: dict[str, dict[int, Series]] = {}
    for one in series_of(run):
        if one.rank is not None and one.meaning.unit == "GiB" and not one.meaning.falls:
            best = groups.setdefault(one.name, {}).get(one.rank)
            if best is None or (one.attempt, one.peak) >= (best.attempt, best.peak):
                groups[one.name][one.rank] = one
    made: list[Imbalance] = []
    for name, ranks in groups.items():
        if len(ranks) >= _FEWEST:
            levels = {rank: one.peak for rank, one in sorted(ranks.items())}
            ordered = sorted(ranks.values(), key=lambda one: (one.peak, -(one.rank or 0)))
            made.append(Imbalance(name, levels, ordered[-1], ordered[0], median_of(list(levels.values()))))
    return tuple(sorted(made, key=lambda row: -row.ratio))
