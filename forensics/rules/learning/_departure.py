"""Where a loss left its course: spikes that recover, and rises, jumps and steps that do not.

All on the logarithm of the loss. Three tests: a spike stands out of its own past and of the largest excursion
downwards; a jump is a step of the level less the slopes on both sides; a climb is a last level above the lowest one
by more than the lowest of many noisy levels lies too low by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, hypot, log, sqrt

import numpy as np
import polars as pl

from forensics.rules.learning._limits import Limits
from forensics.rules.learning._spikes import Spike, spikes_of
from forensics.signals.loss_curve import Curve, Floats
from forensics.signals.loss_noise import MEDIAN_TO_MEAN, Noise, centred_median, logs, noise_about, ratio_of


@dataclass(frozen=True, slots=True)
class Departure:
    """A loss that left its level and did not come back.

    `onset` is a position in the curve. `size` is the ratio of the levels at the onset, `net` the last level in ratio
    to the level just before the onset, `rise` in ratio to the lowest level; `best` and `final` are the lowest and the
    last level themselves. `how` is `spike` (a burst that did not recover), `jump` or `climb`. `climbing`: the last
    levels lie above the lowest one by more than chance. `slope`: the loss falls (-1) or rises (1) after it by more
    than chance. `left` records follow.
    """

    onset: int
    size: float
    net: float
    rise: float
    best: float
    final: float
    how: str
    climbing: bool
    slope: int
    left: int


@dataclass(frozen=True, slots=True)
class Course:
    """What a curve did: its noise, the spikes that recovered, and where it left for good."""

    noise: Noise
    spikes: tuple[Spike, ...]
    departure: Departure | None


@lru_cache(maxsize=64)
def course_of(curve: Curve, limits: Limits) -> Course | None:
    """Follow one curve; None for one of too few positive values, or one that is not positive by nature."""
    y, place = logs(curve.values)
    n = len(y)
    if n < limits.records or n < 0.95 * len(curve):
        return None
    window = min(limits.window, (n // 6) * 2 + 1)
    middle = centred_median(y, window)
    noise = noise_about(y, middle)
    skip = max(10, n // 50)
    jump = _jump(y, noise, limits)
    spikes, lost = spikes_of(y, noise, window, skip, limits)
    if jump is not None and any(abs(jump[0] - s.index) <= _span(n) for s in spikes):
        jump = None
    departure = _departure(_Work(y, middle, noise, window, skip), jump, lost, limits)
    return Course(noise, tuple(s.at(place) for s in spikes), None if departure is None else _placed(departure, place))


@dataclass(frozen=True, slots=True)
class _Work:
    y: Floats
    middle: Floats
    noise: Noise
    window: int
    skip: int


def _placed(d: Departure, place: Floats) -> Departure:
    return replace(d, onset=int(place[d.onset]))


def _span(n: int) -> int:
    """Give the records of one side of a jump: a twelfth of all, 8 to 50."""
    return int(min(50, max(8, n // 12)))


def _jump(y: Floats, noise: Noise, limits: Limits) -> tuple[int, float] | None:
    """Find the largest step of the level that the slopes on both sides do not explain: its index and size in logs."""
    n, w = len(y), _span(len(y))
    level = pl.Series(y).rolling_median(w, min_samples=w).to_numpy()
    t = np.arange(max(5 * w, n // 10), n - 2 * w + 1)
    if not len(t):
        return None
    before, after = level[t - 1], level[t + w - 1]
    earlier, later = level[t - w - 1], level[np.minimum(t + 2 * w - 1, n - 1)]
    step = after - before
    beyond = step - 0.5 * ((later - after) + (before - earlier))
    fair = step > limits.jump_level_z * noise.of_level(w) * sqrt(2)
    beyond = np.where(fair, beyond, -1.0)
    at = int(np.argmax(beyond))
    z = float(beyond[at]) / (noise.of_level(w) * sqrt(5))  # variance of after - before less half of both slopes
    if z <= limits.jump_z or beyond[at] <= log(limits.jump):
        return None
    return int(t[at]), float(beyond[at])


def _departure(w: _Work, jump: tuple[int, float] | None, lost: Spike | None, limits: Limits) -> Departure | None:
    y, middle, noise, n = w.y, w.middle, w.noise, len(w.y)
    last = max(10, min(w.window, n // 10))
    final = float(np.median(y[-last:]))
    past = middle[w.skip : n - last] if n - last > w.skip else middle
    low = int(np.argmin(past)) + (w.skip if n - last > w.skip else 0)
    least, rise = float(middle[low]), final - float(middle[low])
    chance = sqrt(2 * log(max(n / w.window, 2))) * noise.of_level(w.window)
    bound = chance + limits.climb_z * hypot(noise.of_level(w.window), noise.of_level(last))
    bound = max(bound, log(limits.climb))
    ending = middle[low:][-max(last, (n - low) // 3) :]
    bound = max(bound, limits.over_waves * _wave(middle[max(w.skip, n // 10) : low]))
    climbing = rise > bound and float((ending > least + bound / 2).mean()) > limits.kept
    if lost is None and jump is None and not climbing:
        return None
    near = max(3 * MEDIAN_TO_MEAN * noise.sd_long / sqrt(w.window), bound / 3)
    below = np.flatnonzero(middle[low:] <= least + near)
    start = low + int(below[-1])
    if lost is not None and jump is not None and abs(jump[0] - lost.index) <= _span(n):
        onset, size, how = lost.index, jump[1], "jump"
    elif lost is not None:
        onset, size, how = lost.index, log(lost.peak), "spike"
    elif jump is not None and not (climbing and low > jump[0] + 2 * _span(n)):
        onset, size, how = _sharpened(y, jump[0]), jump[1], "jump"
    elif climbing:
        onset, size, how = start, rise, "climb"
    else:
        return None
    before = float(np.median(y[max(0, onset - w.window) : max(onset, 1)]))
    slope = _slope(y[onset + min(_span(n), (n - onset) // 3) :], noise)
    return Departure(
        onset=onset,
        size=ratio_of(size),
        net=ratio_of(final - before),
        rise=ratio_of(rise),
        best=exp(least),
        final=exp(final),
        how=how,
        climbing=bool(climbing),
        slope=slope,
        left=n - onset,
    )


def _wave(levels: Floats) -> float:
    """Give the largest rise above all levels before it, of a stretch that ends at its lowest level: it came back."""
    return float((levels - np.minimum.accumulate(levels)).max()) if len(levels) else 0.0


def _sharpened(y: Floats, at: int) -> int:
    """Put a step where the cumulative sum of the values around it turns (CUSUM)."""
    w = _span(len(y))
    start = max(0, at - w)
    part = y[start : at + w]
    sums = np.cumsum(part - part.mean())[:-1]
    k = np.arange(1, len(part))
    return start + int(np.argmax(-sums / np.sqrt(k * (len(part) - k)))) + 1


def _slope(after: Floats, noise: Noise) -> int:
    half = len(after) // 2
    if half < 1:
        return 0
    change = float(np.median(after[half:]) - np.median(after[:half]))
    bound = 3 * hypot(noise.of_level(half), noise.of_level(len(after) - half))
    return (change > bound) - (change < -bound)


def kind_of(d: Departure, limits: Limits) -> str:
    """Name a departure: `divergence`, `level_shift`, or `unresolved` when too few records follow to tell.

    A jump after which the level stays is a level shift, however high; so is a rise that falls again by itself.
    """
    if d.left < limits.left:
        return "unresolved"
    if d.how == "jump" and max(d.rise, d.net) < limits.far and d.size < limits.big and d.slope <= 0:
        return "level_shift"
    if d.climbing or d.net > limits.near:
        return "divergence" if d.net > limits.far or d.size > limits.big or d.slope >= 0 else "level_shift"
    return "divergence" if d.size > limits.big and d.slope > 0 else "level_shift"
