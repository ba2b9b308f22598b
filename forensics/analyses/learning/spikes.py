"""Spikes of a curve of log values: how high, when they recovered, and where a series left its past."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from msgspec import Struct

from forensics.analyses.learning.levels import Level
from forensics.analyses.learning.limits import Limits
from forensics.stats.running import Places, moving_median, past_median, ratio_of
from forensics.stats.spread import Floats, median_of

#: A rise that so many records hold, and by so much, is one of the level: this share of the usual deviations tells it.
_HELD_RECORDS, _HELD_RATIO, _HELD = 5, 1.5, 0.7


class Spike(Struct, frozen=True):
    """A stretch above the past: its first index, its highest ratio, and the index where the level was back."""

    index: int
    peak: float
    recovered: int | None

    def at(self, place: Places) -> Spike:
        """Give the same spike with indices into the whole curve."""
        back = None if self.recovered is None else int(place[self.recovered])
        return Spike(int(place[self.index]), self.peak, back)


def spikes_of(level: Level, skip: int, limits: Limits) -> tuple[list[Spike], Spike | None]:
    """Find the spikes that recovered, and the first one that did not; `skip` first records are passed over."""
    y, noise, window, n = level.y, level.noise, level.window, len(level.y)
    excess = np.nan_to_num(y - past_median(y, window, middle=level.middle), copy=False)
    excess[:skip] = 0.0
    dips = median_of(excess[skip:]) - excess
    sd = noise.sd * sqrt(1 + 1.57 / window)
    high = _hot(excess, sd, max(0.0, float(dips.max())), limits)
    hot = np.flatnonzero(high | _held(excess, sd, max(0.0, float(dips[_learned(y, skip) :].max())), limits))
    if not len(hot):
        return [], None
    ahead = moving_median(y, limits.back)
    slack = max(3 * noise.of_level(limits.back), 0.02)
    found: list[Spike] = []
    reach = max(limits.patience, int(n * limits.patience_share))
    free = 0
    while len(found) < limits.most:
        later = np.searchsorted(hot, free)
        if later >= len(hot):
            return found, None
        i = int(hot[later])
        before = median_of(y[max(0, i - window) : i])
        end = min(n - 4, i + reach)
        back = _first_at_most(ahead, before + slack, i + 1, min(end, n - limits.back + 1))
        peak = ratio_of(float(y[i : back if back is not None else min(n, i + reach)].max()) - before)
        if back is None:
            while not high[i] and i > free and excess[i - 1] > _OUTSIDE * sd:
                i -= 1  # a climb left its past before it is told
            return found, Spike(i, peak, None)
        found.append(Spike(i, peak, back))
        free = back + 1
    return found, None


def _held(excess: Floats, sd: float, dip: float, limits: Limits) -> np.ndarray:
    """Records from which on the median of some lies that far above the past; the last ones have too few behind them."""
    least = max(_HELD * limits.spike_z * sd, log(_HELD_RATIO), limits.over_dips * dip)
    above, count = excess > least, max(0, len(excess) - _HELD_RECORDS + 1)
    many = np.sum([above[k : count + k] for k in range(_HELD_RECORDS)], axis=0, dtype=np.uint8)
    held = np.zeros(len(above), np.bool_)
    held[:count] = above[:count] & (many > _HELD_RECORDS // 2)  # where more than half of an odd number is above
    return held


def _learned(y: Floats, skip: int) -> int:
    """Where the past of a series is its level: what a model learns first is a fall for good, and no dip."""
    reached = int(np.argmax(y <= median_of(y[skip:])))
    return max(skip, min(2 * reached, len(y) // 2))


def _hot(excess: Floats, sd: float, dip: float, limits: Limits) -> np.ndarray:
    hot = (excess > limits.spike_z * sd) & (excess > log(limits.spike_ratio)) & (excess > limits.over_dips * dip)
    lone = hot.copy()
    lone[:-1] &= ~hot[1:]
    lone[1:] &= ~hot[:-1]
    strong = (excess > log(limits.lone_ratio)) & (excess > limits.lone_over_dips * dip)
    return hot & (~lone | strong)


def _first_at_most(values: Floats, bound: float, start: int, stop: int) -> int | None:
    """Search in growing pieces, as most spikes are short."""
    size = 64
    while start < stop:
        piece = values[start : min(stop, start + size)]
        hits = np.flatnonzero(piece <= bound)
        if len(hits):
            return start + int(hits[0])
        start += size
        size *= 2
    return None


#: Deviations above the level before that a record must lie to belong to the rise: 1 of 740 does by chance.
_OUTSIDE = 3.0


def onset_of(y: Floats, low: int, high: int, level: float, sd: float) -> int:
    """Give the first position of a rise of `y` above `level` that begins after `low` and is made at `high`.

    Between the two a step (all records after it lie up) and a hinge (they climb from it on) are fitted at every
    position by least squares; the one that explains most places the onset. Records before it that stand out of the
    noise `sd`, each of them up to it, belong to the rise as well.
    """
    part = y[low : high + 1] - level
    n = len(part)
    if n < 2:
        return high
    after = np.arange(n, 0, -1, dtype=np.float64)
    sums = np.cumsum(part[::-1])[::-1]
    weighted = np.cumsum((np.arange(n) * part)[::-1])[::-1]
    step = np.maximum(sums, 0.0) ** 2 / after
    # a hinge at k: records k, k + 1, … lie 1, 2, … slopes above the level
    climb = weighted - (np.arange(n) - 1) * sums
    hinge = np.maximum(climb, 0.0) ** 2 / (after * (after + 1) * (2 * after + 1) / 6)
    at = int(np.argmax(hinge if hinge.max() > step.max() else step))
    while at > 0 and part[at - 1] > _OUTSIDE * sd:
        at -= 1
    while at < n - 1 and part[at] <= 0:
        at += 1
    return low + at
