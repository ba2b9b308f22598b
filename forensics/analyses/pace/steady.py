"""A series of times per step made steady: warm-up cut off, pauses set aside, the unit of printing known."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log, log10
from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from forensics.analyses.pace.pauses import (
    Comb,
    Flags,
    Spikes,
    Steps,
    by_record,
    combs,
    floor_of,
    spikes,
    warmup,
    winsorised,
)
from forensics.stats.spread import Floats, each_once, jitter, median_of, quantiles_of
from forensics.values import replace

T = TypeVar("T", bound=np.generic)
#: Fewer records than this are no series.
FEWEST = 12
#: Fewer records than this are no level.
SHORTEST = 5
_MODES = 0.15  # share of spikes above which they are a second mode, not spikes
_NOTHING = 0.02  # of the median: no step was done in so little time, as where a bar is drawn once more at its end
_MULTIPLE = 1e-3  # of a unit: what rounding in floating point may add
#: The smallest difference of fewer values than these is that of two levels, not of the printing.
_FEW_VALUES = 4
#: Nobody prints a time finer than in nanoseconds.
_FINEST = -10
#: A tenth of the records is slower by half than the level around them, and twice as far as the fast ones are below it.
_BUSY, _SKEW = log(1.5), 2.0


class Steady(Struct, frozen=True):
    """Records of one series after the warm-up, with what stands out of them.

    `kept` are the positions in the series that was given, `seconds` and `steps` theirs; `logs` are the logarithms
    without a pattern of `period` records (0: none). `slow` flags what stands out of the times as they were, `pauses`
    are the periods of those. Where noise only adds time it is `shared`.
    `resolution` is the printing unit over the median.
    """

    kept: Steps
    seconds: Floats
    steps: Steps
    logs: Floats
    spikes: Spikes
    slow: Flags
    pauses: tuple[Comb, ...]
    period: int
    multimodal: bool
    shared: bool
    resolution: float
    warmup: int

    def __len__(self) -> int:
        """Count the records."""
        return len(self.logs)

    @property
    def values(self) -> Floats:
        """The logs that a level may be judged on: spikes replaced, tails pulled in; their floor where `shared`."""
        if self.shared:
            return floor_of(self.logs)
        if not self.multimodal:
            return winsorised(self.logs, self.spikes)
        low, high = quantiles_of(self.logs, (0.01, 0.99))
        return np.clip(self.logs, low, high)

    @property
    def excess(self) -> Floats:
        """Time that pauses add to each record, in units of the level around it; 0 elsewhere, at most ten."""
        added, high = np.zeros(len(self)), self.paused
        added[high] = np.expm1(np.clip(self.logs[high] - self.spikes.base[high], 0.0, log(11)))
        return added

    def slice(self, first: int, end: int | None = None) -> Steady:
        """Give the records from `first` up to `end`, as a series of their own without a warm-up."""
        part = (self.logs[first:end], self.seconds[first:end], self.steps[first:end], self.kept[first:end])
        return _steady(*part, (0, self.resolution))

    def without_climb(self) -> Steady:
        """Give the records at the mean of the levels around them: a climb that is known is no noise."""
        logs = self.logs - self.spikes.base + self.spikes.base.mean()
        return _steady(logs, np.exp(logs), self.steps, self.kept, (0, self.resolution))

    def periodic(self, periods: Sequence[Comb]) -> Flags:
        """Flag the slow records that come with one of these periods."""
        due = [comb.holds(self.steps) for comb in periods]
        return self.slow & np.logical_or.reduce(due) if due else np.zeros(len(self), dtype=np.bool_)

    @property
    def paused(self) -> Flags:
        """Flag the records that hold a pause."""
        return self.spikes.high(self.logs)


def steady(seconds: Floats, steps: Steps, quantum: float = 0.0, *, fewest: int = FEWEST) -> Steady | None:
    """Make a series steady; None when fewer than `fewest` records are positive and finite, and not warm-up.

    Records of next to no time are left out.

    `quantum` is the unit in which times were printed, where the reader knows it better than the values show.
    """
    good = np.flatnonzero(np.isfinite(seconds) & (seconds > 0)).astype(np.uint32)
    if len(good) < fewest:
        return None
    found = _some(seconds, good)
    good = good[found >= _NOTHING * median_of(found)]
    logs = np.log(_some(seconds, good))
    cold = warmup(logs, jitter(logs) + 1e-9)
    good, logs = good[cold:], logs[cold:]
    if len(good) < fewest:
        return None
    seconds, steps = _some(seconds, good), _some(steps, good)
    return _steady(logs, seconds, steps, good, (cold, resolution(seconds, quantum)))


def _some(values: NDArray[T], places: Steps) -> NDArray[T]:
    """The values at places that rise; nothing is copied where these are all from the first to the last."""
    first, last = int(places[0]), int(places[-1])
    return values[first : last + 1] if last - first + 1 == len(places) else values[places]


def _steady(logs: Floats, seconds: Floats, steps: Steps, kept: Steps, known: tuple[int, float]) -> Steady:
    alone = spikes(logs)
    slow, found = alone.high(logs), _ended(logs, alone)
    pattern = by_record(logs)
    if pattern is not None:
        logs = pattern[1]
        found = _ended(logs, spikes(logs))
    many = float(found.far.mean()) > _MODES
    return Steady(
        kept=kept,
        seconds=seconds,
        steps=steps,
        logs=logs,
        spikes=found,
        slow=slow,
        pauses=combs(steps[slow], int(steps[0]), int(steps[-1])),
        period=pattern[0] if pattern is not None else 0,
        multimodal=many,
        shared=_one_sided(logs, found.base),
        resolution=known[1],
        warmup=known[0],
    )


def _ended(logs: Floats, found: Spikes) -> Spikes:
    """Take the slow records that reach the end for a level: nothing came back, and a median looks across them."""
    high = found.high(logs)
    first = len(high) - int(np.argmin(high[::-1])) if not high.all() else 0
    if len(high) - first < SHORTEST:
        return found
    far, base = found.far.copy(), found.base.copy()
    far[first:], base[first:] = False, median_of(logs[first:])
    return replace(found, far=far, base=base)


def _one_sided(logs: Floats, base: Floats) -> bool:
    """Whether steps are often slower than the level around them, and never faster: a machine that is shared."""
    low, middle, high = quantiles_of(logs - base, (0.1, 0.5, 0.9))
    return high - middle > max(_BUSY, _SKEW * (middle - low))


def coarseness(series: Steady) -> float:
    """The resolution of a series; one that never changes has the unit in which its only value is printed."""
    value = series.seconds[:1]
    still = float(np.ptp(series.seconds)) == 0.0
    return max(series.resolution, _printed_in(value, float(value[0])) / float(value[0])) if still else series.resolution


def resolution(seconds: Floats, quantum: float = 0.0) -> float:
    """Printing unit over the median: the smallest difference of two values, where all are multiples of it.

    Of a few values it is the largest power of ten at most, since 0.5 and 1.0 are printed in tenths. `quantum` is a unit
    that is known to be no finer.
    """
    distinct = each_once(seconds)
    seen = float(np.diff(distinct).min()) if len(distinct) > 1 else 0.0
    if seen and not _are_multiples(distinct, seen):
        seen = 0.0
    if seen and len(distinct) < _FEW_VALUES:
        seen = _printed_in(distinct, seen)
    return max(seen, quantum) / median_of(seconds)


def _printed_in(values: Floats, most: float) -> float:
    """The largest power of ten, up to `most`, that divides all values; 0 where none is."""
    powers = (10.0**power for power in range(floor(log10(most)), _FINEST, -1))
    return next((unit for unit in powers if _are_multiples(values, unit)), 0.0)


def _are_multiples(seconds: Floats, unit: float) -> bool:
    return float(np.abs(seconds / unit - np.round(seconds / unit)).max()) <= _MULTIPLE
