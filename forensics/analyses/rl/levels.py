"""Levels, trends and how long a noisy series has been where it is: measures only, no thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

import polars as pl

_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class Stay:
    """How a condition held lately: in what share of the last records, and from which index on without a break."""

    share: float
    onset: int


@dataclass(frozen=True, slots=True)
class Trend:
    """How a series moved: medians of its first and last fifth, Kendall's tau over equal parts, and its z.

    `z` is tau over its standard deviation if parts were in random order (Kendall 1938); `noise` is the robust standard
    deviation of single values about their part's median.
    """

    first: float
    last: float
    tau: float
    z: float
    noise: float


def running_median(values: pl.Series, window: int) -> pl.Series:
    """Median of each value and those before it; of fewer than `window` at the start."""
    return values.rolling_median(window, min_samples=1)


def stay_of(held: pl.Series, *, last: int) -> Stay:
    """Measure how a condition held over the last `last` records; the onset follows the last record where it did not."""
    tail = held.tail(last)
    share = float(tail.sum()) / max(1, tail.len())
    broken = (~held).arg_true()
    return Stay(share, int(broken[-1]) + 1 if broken.len() else 0)


def onset_of(raw: pl.Series, medians: pl.Series, *, last: int, window: int) -> int:
    """Index where a state began that now holds; `raw` and `medians` tell of each record whether it, its median is so.

    Breaks of the medians shorter than a fifth of `last` are bridged; the running median lags by half its window, so the
    first record of the window that is itself in the state is taken.
    """
    bridged = medians.cast(pl.Float64).rolling_mean(max(1, last // 2), min_samples=1, center=True) > 0.5
    start = stay_of(bridged, last=last).onset
    low = max(0, start - window + 1)
    own = raw.slice(low, window * 2).arg_true()
    return min(low + int(own[0]) if own.len() else start, raw.len() - 1)


def trend_of(values: pl.Series, *, parts: int = 20) -> Trend | None:
    """Measure the trend of a series from the medians of `parts` equal parts; None when it is shorter than that."""
    size = values.len() // parts
    if not size:
        return None
    frame = pl.DataFrame({"value": values.tail(size * parts)}).with_row_index("i")
    frame = frame.with_columns(part=pl.col("i") // size).with_columns(middle=pl.col("value").median().over("part"))
    middles = frame.group_by("part", maintain_order=True).agg(pl.col("value").median())["value"]
    pairs = pl.DataFrame({"a": middles}).with_row_index("i")
    signs = pairs.join_where(pairs.rename({"a": "b", "i": "j"}), pl.col("i") < pl.col("j"))
    score = float((signs["b"] - signs["a"]).sign().sum())
    count = parts * (parts - 1) / 2
    spread = sqrt(parts * (parts - 1) * (2 * parts + 5) / 18)
    fifth = max(1, values.len() // 5)
    deviation = (frame["value"] - frame["middle"]).abs()
    return Trend(
        first=median(values.head(fifth)),
        last=median(values.tail(fifth)),
        tau=score / count,
        z=score / spread,
        noise=_MAD_TO_SIGMA * median(deviation),
    )


def spread_of(values: pl.Series) -> float:
    """Robust standard deviation over the median (0 when the median is not positive)."""
    middle = median(values)
    return _MAD_TO_SIGMA * median((values - middle).abs()) / middle if middle > 0 else 0.0


def median(values: pl.Series) -> float:
    """Median as a float; 0 of an empty series."""
    found = values.median()
    return float(found) if isinstance(found, int | float) else 0.0


def together(a: pl.DataFrame, b: pl.DataFrame) -> float:
    """Correlation of two series (columns `at`, `value`) over their common steps; 0 for too few or flat ones."""
    joined = a.select("at", x="value").join(b.select("at", y="value"), on="at", how="inner")
    if joined.height < 3:
        return 0.0
    found = joined.select(pl.corr("x", "y")).item()
    return float(found) if isinstance(found, float) and isfinite(found) else 0.0
