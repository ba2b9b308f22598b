"""Where a loss left its best level for good, and how far: no thresholds, only levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from forensics.signals.loss_curve import Floats

_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class Rise:
    """How a series left its best level.

    `best` is the lowest level reached and `final` the level of the last tenth; `onset` is the index of the first value
    above the middle of the two after which none is below it; `noise` is the robust standard deviation of values about
    their neighbours' median before the onset; `frozen` counts equal values at the end; `returns` says how often before
    the onset a level had been above the final one and had come back below the middle.
    """

    best: float
    final: float
    onset: int
    noise: float
    frozen: int
    returns: int = 0


def rise_of(values: Sequence[float] | Floats, *, window: int) -> Rise | None:
    """Measure how a series rose from its best level to its last one; None when it ends at its best.

    `window` is the number of values whose median counts as a level.
    """
    if len(values) < 2 * window:
        return None
    series = pl.Series(values, dtype=pl.Float64)
    levels = series.rolling_median(window)
    best = _float(levels.min())
    final = _float(series.tail(max(window, len(values) // 10)).median())
    if final <= best:
        return None
    middle = best + (final - best) / 2
    low = (series < middle).arg_true()
    onset = int(low[-1]) + 1 if low.len() else 0
    noise = _noise(series.head(onset) if onset else series, window)
    return Rise(best, final, onset, noise, _equal_at_end(series), _returns(levels.head(onset), middle, final))


def _returns(levels: pl.Series, low: float, high: float) -> int:
    """Count how often levels went from below `low` to above `high` and below `low` again."""
    side = (levels > high).cast(pl.Int8) - (levels < low).cast(pl.Int8)
    kept = side.filter(side.fill_null(0) != 0)
    falls = int(((kept == -1) & (kept.shift(1) == 1)).sum())
    return max(0, falls - int(kept.len() > 0 and kept[0] == 1))


def _noise(series: pl.Series, window: int) -> float:
    middle = series.rolling_median(window, min_samples=1, center=True)
    return _MAD_TO_SIGMA * _float((series - middle).abs().median())


def _equal_at_end(series: pl.Series) -> int:
    other = (series != series[-1]).arg_true()
    return series.len() - (int(other[-1]) + 1 if other.len() else 0)


def _float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
