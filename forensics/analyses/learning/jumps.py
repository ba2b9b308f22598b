"""The largest step of a level that the slopes on both sides do not explain."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import polars as pl

from forensics.analyses.learning.limits import Limits
from forensics.stats.correlation import Noise
from forensics.stats.spread import Floats


def span_of(n: int) -> int:
    """Give the records of one side of a jump: a twelfth of all, 8 to 50."""
    return int(min(50, max(8, n // 12)))


def jump_of(y: Floats, noise: Noise, limits: Limits) -> tuple[int, float] | None:
    """Find the largest step of the level that the slopes on both sides do not explain: its index and size in logs."""
    n, w = len(y), span_of(len(y))
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


def sharpened(y: Floats, at: int) -> int:
    """Put a step where the cumulative sum of the values around it turns (CUSUM)."""
    w = span_of(len(y))
    start = max(0, at - w)
    part = y[start : at + w]
    sums = np.cumsum(part - part.mean())[:-1]
    k = np.arange(1, len(part))
    return start + int(np.argmax(-sums / np.sqrt(k * (len(part) - k)))) + 1
