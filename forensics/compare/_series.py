"""The series of a run that can be compared with another run's, and the choice of one that both have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.analyses.pace.clocks import Clock, clocks
from forensics.analyses.pace.pauses import Steps, warmup
from forensics.stats.spread import Floats, jitter
from forensics.store.run import Run
from forensics.values import firsts

#: Per what, best first: per token or sample a longer batch is no slower step.
_UNITS = ("token", "sample", "token/device", "step", "flop")
_FINE = 0.01
#: Fewer records than this on one side are no series.
FEWEST = 8


class Series(Struct, frozen=True):
    """Times of one clock over all attempts of a run, the warm-up of later attempts cut off.

    `seconds` per `unit` and `steps`, shape (n,); `interval` the steps between records; `quantum` the printing unit.
    """

    clock: Clock
    seconds: Floats
    steps: Steps
    interval: float
    dropped: int

    @property
    def key(self) -> tuple[str, str]:
        """Its unit and form."""
        return self.clock.unit, "mean" if self.clock.form in {"clock", "wall"} else "sample"

    @property
    def resolution(self) -> float:
        """Give the printing unit over the median."""
        return max(self.clock.quantum, _printed(self.seconds)) / float(np.median(self.seconds))


def series_of(run: Run) -> list[Series]:
    """Give the longest series of each unit and form, best first."""
    groups: dict[tuple[str, int | None, str, str], list[Clock]] = {}
    for clock in clocks(run):
        groups.setdefault((clock.source, clock.rank, clock.unit, clock.name), []).append(clock.calm())
    every = [_joined(group) for group in groups.values()]
    every.sort(key=lambda s: (_UNITS.index(s.clock.unit), s.clock.order, -len(s.seconds), s.clock.source))
    return [s for s in firsts(every, lambda s: (s.key, s.clock.name)) if len(s.seconds) >= FEWEST]


def matched(runs: Sequence[Run], metric: str | None) -> tuple[Series, ...] | str:
    """Choose one series for each run, all of the same unit; a sentence says why no series fits.

    The finest of the best unit, of the same name where all have it. `metric` is a name as printed or canonical.
    """
    every = [
        [s for s in series_of(run) if metric is None or metric in {s.clock.name, s.clock.row(0)["name"]}]
        for run in runs
    ]
    for run, found in zip(runs, every, strict=True):
        if not found:
            known = sorted({s.clock.name for s in series_of(run)})
            said = f"; it has {', '.join(known[:8])}" if known else ""
            what = f"{metric!r}" if metric else "throughput, step time or clock"
            return f"{run.name} has no {what} of {FEWEST} records{said}"
    choices = [c for first in every[0] if (c := _with(first, every[1:])) is not None]
    if not choices:
        return "the runs print no throughput in the same unit"
    fine = [c for c in choices if max(s.resolution for s in c) <= _FINE]
    return fine[0] if fine else min(choices, key=lambda c: max(s.resolution for s in c))


def _with(first: Series, others: list[list[Series]]) -> tuple[Series, ...] | None:
    chosen = [first]
    for found in others:
        alike = [s for s in found if s.clock.unit == first.clock.unit]
        if not alike:
            return None
        chosen.append(min(alike, key=lambda s: (s.clock.name != first.clock.name, s.key != first.key)))
    return tuple(chosen)


def _joined(group: list[Clock]) -> Series:
    first = max(group, key=len)
    parts = list[pl.DataFrame]()
    dropped = 0
    for number, clock in enumerate(sorted(group, key=lambda c: c.attempt)):
        logs = np.log(clock.seconds)
        cold = warmup(logs, jitter(logs)) if number else 0
        dropped += cold
        parts.append(clock.rows.select("at", "passed", "pace").slice(cold))
    rows = pl.concat(parts, how="vertical_relaxed")
    gap = float(np.median(rows["passed"].to_numpy()))
    return Series(first, rows["pace"].to_numpy(), rows["at"].to_numpy(), gap, dropped)


def _printed(values: Floats) -> float:
    distinct = np.unique(values)
    return float(np.diff(distinct).min()) if 1 < len(distinct) < 0.2 * len(values) else 0.0
