"""Fits for a series of memory: its noise, a robust line, steps by splitting in two, and isolated excursions.

Everything is numpy over whole arrays; loops go over splits, steps or excursions, never over points.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAD_TO_SIGMA = 1.4826
#: A series is judged by so many samples at most; longer ones by medians of equal blocks.
MOST_SAMPLES = 4096
_PAIRS_OF = 300
_MOST_SPLITS = 64


@dataclass(frozen=True, slots=True)
class Line:
    """A robust line through (t, y), t in 0 … 1: `rise` over the window, its quartiles over pairs, and the start."""

    rise: float
    low: float
    high: float
    start: float


def spread(values: Floats) -> float:
    """Standard deviation by the median absolute deviation (Hampel 1974); 0 for fewer than 2 values."""
    return MAD_TO_SIGMA * float(np.median(np.abs(values - np.median(values)))) if len(values) > 1 else 0.0


def noise_of(y: Floats) -> float:
    """Standard deviation of what is left without trend and steps: from differences of near and of farther samples.

    Differences of neighbours alone would call slowly wandering noise smooth.
    """
    lags = {1, max(1, len(y) // 50)}
    return max(spread(y[lag:] - y[:-lag]) for lag in lags) / 2**0.5 if len(y) > max(lags) + 1 else 0.0


def near_noise(y: Floats) -> float:
    """Standard deviation of one sample by differences of neighbours alone, which teeth and steps hardly touch."""
    return spread(y[1:] - y[:-1]) / 2**0.5


def line_of(t: Floats, y: Floats) -> Line:
    """Fit the median of the slopes of all pairs (Theil 1950, Sen 1968), of at most 300 samples spread evenly."""
    if len(y) > _PAIRS_OF:
        chosen = np.linspace(0, len(y) - 1, _PAIRS_OF).astype(int)
        t, y = t[chosen], y[chosen]
    i, j = np.triu_indices(len(y), 1)
    apart = t[j] - t[i]
    kept = apart > 0
    if not kept.any():
        return Line(0.0, 0.0, 0.0, float(np.median(y)) if len(y) else 0.0)
    slopes = (y[j] - y[i])[kept] / apart[kept]
    low, rise, high = (float(q) for q in np.quantile(slopes, (0.25, 0.5, 0.75)))
    return Line(rise, low, high, float(np.median(y - rise * t)))


def change_points(y: Floats, noise: float) -> list[int]:
    """Find where the mean changes: split in two while the squared error falls by 3 sigma^2 log n (Scott, Knott 1974).

    Each place is then sought again between its neighbours, and dropped when it no longer pays.
    """
    n = len(y)
    enough = 3 * noise**2 * log(max(n, 2))
    sums = np.concatenate(([0.0], np.cumsum(y - y.mean())))
    cuts: list[int] = []
    todo = [(0, n)]
    while todo and len(cuts) < _MOST_SPLITS:
        gains = [_best(sums, a, b) for a, b in todo]
        best = int(np.argmax([gain for gain, _ in gains]))
        gain, at = gains[best]
        if gain <= enough:
            break
        a, b = todo.pop(best)
        cuts.append(at)
        todo += [(a, at), (at, b)]
    for _ in range(2):
        cuts = _placed_again(sums, sorted(cuts), enough)
    return cuts


def _best(sums: Floats, a: int, b: int) -> tuple[float, int]:
    """Give the largest fall of the squared error by one cut of [a, b), and the cut."""
    if b - a < 4:
        return 0.0, a
    cut = np.arange(a + 2, b - 1)
    left = sums[cut] - sums[a]
    whole, size, lengths = sums[b] - sums[a], b - a, cut - a
    gains = (left - whole * lengths / size) ** 2 * size / (lengths * (size - lengths))
    best = int(np.argmax(gains))
    return float(gains[best]), int(cut[best])


def _placed_again(sums: Floats, cuts: list[int], enough: float) -> list[int]:
    kept: list[int] = []
    for i in range(len(cuts)):
        before = kept[-1] if kept else 0
        after = cuts[i + 1] if i + 1 < len(cuts) else len(sums) - 1
        gain, at = _best(sums, before, after)
        if gain > enough:
            kept.append(at)
    return kept


def running_median(y: Floats, width: int) -> Floats:
    """Median of `width` (odd) samples about each one; the ends are repeated."""
    padded = np.pad(y, width // 2, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1)


def excursions(y: Floats, least: float) -> list[tuple[int, int]]:
    """Find isolated stretches above a running median by more than `least` that begin and end with a jump.

    Each is half open, at most a twentieth of the samples long (or one sample), and touches neither end.
    """
    n = len(y)
    longest = max(1, n // 20)
    above = y - running_median(y, max(5, 2 * longest + 1))
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
