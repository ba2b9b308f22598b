"""Trends: a robust line (Theil and Sen), and whether a series rises at all (Kendall)."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite, sqrt

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from forensics.stats.spread import MAD_TO_SIGMA, Floats, median_of, quantiles_of

_PAIRS_OF = 300


class Line(Struct, frozen=True):
    """A robust line through (t, y), t in 0 … 1: `rise` over the window, and the start."""

    rise: float
    start: float


@lru_cache(maxsize=8)
def _pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of each two of so many values: most lines are fitted to equally many."""
    i, j = np.triu_indices(count, 1)
    for places in (i, j):
        places.flags.writeable = False
    return i, j


def line_of(t: Floats, y: Floats) -> Line:
    """Fit the median of the slopes of all pairs (Theil 1950, Sen 1968), of at most 300 samples spread evenly."""
    if len(y) > _PAIRS_OF:
        chosen = np.linspace(0, len(y) - 1, _PAIRS_OF).astype(int)
        t, y = t[chosen], y[chosen]
    i, j = _pairs(len(y))
    apart = t[j] - t[i]
    kept = apart > 0
    if not kept.any():
        return Line(0.0, median_of(y) if len(y) else 0.0)
    slopes = (y[j] - y[i])[kept] / apart[kept]
    rise = quantiles_of(slopes, (0.5,))[0]
    return Line(rise, median_of(y - rise * t))


class Trend(Struct, frozen=True):
    """How a series moved: medians of its first and last fifth, Kendall's tau over equal parts, and its z.

    `z` is tau over its standard deviation if parts were in random order (Kendall 1938); `noise` is the robust standard
    deviation of single values about their part's median.
    """

    first: float
    last: float
    tau: float
    z: float
    noise: float


def trend_of(values: Floats, *, parts: int = 20) -> Trend | None:
    """Measure the trend of a series from the medians of `parts` equal parts; None when it is shorter than that."""
    size, fifth = len(values) // parts, max(1, len(values) // 5)
    if not size:
        return None
    blocks = values[-size * parts :].reshape(parts, size)
    middles = np.median(blocks, axis=1)
    earlier, later = _pairs(parts)
    score = float(np.sign(middles[later] - middles[earlier]).sum())
    return Trend(
        first=median_of(values[:fifth]),
        last=median_of(values[-fifth:]),
        tau=score / len(earlier),
        z=score / sqrt(parts * (parts - 1) * (2 * parts + 5) / 18),
        noise=MAD_TO_SIGMA * median_of(np.abs(blocks - middles[:, None]).ravel()),
    )


def together(a: pl.DataFrame, b: pl.DataFrame) -> float:
    """Correlation of two series (columns `at`, `value`) over their common steps; 0 for too few or flat ones."""
    joined = a.select("at", x="value").join(b.select("at", y="value"), on="at", how="inner")
    if joined.height < 3:
        return 0.0
    found = joined.select(pl.corr("x", "y")).item()
    return float(found) if isinstance(found, float) and isfinite(found) else 0.0
