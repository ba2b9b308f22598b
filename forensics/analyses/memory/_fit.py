"""What a series of memory is made of: its noise, and isolated excursions.

Everything is numpy over whole arrays; loops go over splits, steps or excursions, never over points.
"""

from __future__ import annotations

import numpy as np

from forensics.stats.running import edge_median
from forensics.stats.spread import Floats, spread

#: A series is judged by so many samples at most; longer ones by medians of equal blocks.
MOST_SAMPLES = 4096


def noise_of(y: Floats) -> float:
    """Standard deviation of what is left without trend and steps: from differences of near and of farther samples.

    Differences of neighbours alone would call slowly wandering noise smooth.
    """
    lags = {1, max(1, len(y) // 50)}
    return max(spread(y[lag:] - y[:-lag]) for lag in lags) / 2**0.5


def near_noise(y: Floats) -> float:
    """Standard deviation of one sample by differences of neighbours alone, which teeth and steps hardly touch."""
    return spread(y[1:] - y[:-1]) / 2**0.5


def excursions(y: Floats, least: float) -> list[tuple[int, int]]:
    """Find isolated stretches above a running median by more than `least` that begin and end with a jump.

    Each is half open, at most a twentieth of the samples long (or one sample), and touches neither end.
    """
    n = len(y)
    longest = max(1, n // 20)
    above = y - edge_median(y, max(5, 2 * longest + 1))
    over = np.concatenate(([0], (above > least).astype(np.int8), [0]))
    edges = np.diff(over)
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    kept = (ends - starts <= longest) & (starts > 0) & (ends < n)
    starts, ends = starts[kept], ends[kept]
    if not len(starts):
        return []
    high = 0.6 * np.maximum.reduceat(np.append(above, 0.0), np.stack((starts, ends), axis=1).ravel())[::2]
    sudden = (y[starts] - y[starts - 1] >= high) & (y[ends - 1] - y[ends] >= high)
    return list(zip(starts[sudden].tolist(), ends[sudden].tolist(), strict=True))


def without(y: Floats, stretches: list[tuple[int, int]]) -> Floats:
    """Give the series with each stretch replaced by the mean of its two neighbours."""
    calm = y.copy()
    for a, b in stretches:
        calm[a:b] = (calm[a - 1] + y[min(b, len(y) - 1)]) / 2
    return calm


def thinned(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats, int]:
    """Give at most 4,096 samples: medians of x and y over odd blocks, block maxima of y, and samples per block."""
    per = -(-len(y) // MOST_SAMPLES)
    if per == 1:
        return x, y, y, 1
    per += 1 - per % 2  # the median of an odd number is one of them: an edge stays sharp
    whole = len(y) // per * per
    tops = y[:whole].reshape(-1, per)
    return np.median(x[:whole].reshape(-1, per), axis=1), np.median(tops, axis=1), tops.max(axis=1), per
