"""Running medians: about each value, before it, and up to it; and series on a logarithmic scale."""

from __future__ import annotations

from math import exp

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forensics.stats.spread import MAD_TO_SIGMA, Floats

#: Positions in a series, rising.
Places = range | NDArray[np.intp]
#: Fewer values than these, in all windows together, are sorted at once in less time than a query takes: 70 µs.
_FEW = 16_384
#: So many windows that are not full yet are looked at one by one, 15 µs each.
_FEW_EDGES = 4
#: Of an array polars loads `numpy.ma`, in 5 ms; up to so many numbers are a list in 0.1 ms.
_SHORT = 5_000
#: So many values are asked for at once: of a query all that it gives is held twice.
_PIECE = 1_000_000


def ratio_of(difference: float) -> float:
    """Turn a difference of logarithms into a ratio, at most e to the 700th, near the largest number."""
    return exp(min(difference, 700.0))


def logs(values: Floats) -> tuple[Floats, Places]:
    """Give the logarithms of the positive values, and the positions those had."""
    if len(values) and values.min() > 0:
        return np.log(values), range(len(values))
    kept = np.flatnonzero(values > 0)
    return np.log(values[kept]), kept


def block_means(values: Floats, size: int) -> Floats:
    """Average so many neighbours at a time; the last values that fill no block are left out."""
    count = len(values) // size
    return values[: count * size].reshape(count, size).mean(axis=1)


def centred_median(y: Floats, window: int) -> Floats:
    """Median of `window` (odd) values around each one; the two ends are mirrored."""
    half = min(window // 2, max(0, len(y) - 1))
    return (
        moving_median(np.concatenate([y[1 : half + 1][::-1], y, y[-half - 1 : -1][::-1]]), 2 * half + 1) if half else y
    )


def edge_median(y: Floats, width: int) -> Floats:
    """Median of `width` (odd) values around each one; the first and the last value are repeated."""
    return moving_median(np.pad(y, width // 2, mode="edge"), 2 * (width // 2) + 1)


def past_median(y: Floats, window: int, least: int = 5, middle: Floats | None = None) -> Floats:
    """Median of the `window` values before each one, itself excluded; NaN where fewer than `least` are known.

    `middle` is `centred_median` of the same window, where somebody has it: that of an earlier value is the same.
    """
    if middle is not None and window % 2 and len(y) > window:
        return np.concatenate([past_median(y[:window], window, least), middle[window // 2 :][: len(y) - window]])
    least = min(least, window)
    if len(y) * window > _FEW or window - least > _FEW_EDGES:
        return np.concatenate([[np.nan], _rolled(y, window, least)[:-1]])[: len(y)]
    known = [moving_median(y[:count], count)[0] for count in range(least, min(window, len(y)))]
    return np.concatenate([np.full(least, np.nan), known, moving_median(y, window)])[: len(y)]


def moving_median(y: Floats, width: int) -> Floats:
    """Median of each `width` values that follow each other, the first ones first; none of fewer values."""
    if len(y) < width:
        return y[:0]
    if len(y) * width > _FEW:
        return _rolled(y, width, width)[width - 1 :]
    half, windows = width // 2, y[np.arange(len(y) - width + 1)[:, None] + np.arange(width)]
    if width % 2:
        windows.partition(half, axis=1)
        return windows[:, half]
    windows.partition((half - 1, half), axis=1)
    return windows[:, half - 1] + (windows[:, half] - windows[:, half - 1]) * 0.5


def _rolled(y: Floats, width: int, least: int) -> Floats:
    """Median of each value and of up to `width` - 1 before it; NaN where these are fewer than `least` together."""
    found = np.empty(len(y))
    for first in range(0, len(y), _PIECE):
        begin = max(0, first - width + 1)
        part = y[begin : first + _PIECE]
        known = pl.Series(part.tolist() if len(part) <= _SHORT else part, dtype=pl.Float64)
        found[first : first + _PIECE] = known.rolling_median(width, min_samples=least).to_numpy()[first - begin :]
    return found


def robust(rows: pl.DataFrame, *, window: int = 50, least: int = 5, floor: float = 0.02) -> pl.DataFrame:
    """Finite positive rows with `median` of the previous ones, `ratio` to it, and robust `z` of the logarithm.

    `window` and `least` count records, the present one excluded; `floor` is the least standard deviation in log units,
    so that a series printed with few digits has no infinite z. Rows with too little past have null `ratio` and `z`.
    """
    kept = rows.filter(pl.col("value").is_finite() & (pl.col("value") > 0)).with_columns(log=pl.col("value").log())
    middle = pl.col("log").rolling_median(window, min_samples=least).shift(1)
    spread = (pl.col("log") - pl.col("log").rolling_median(window, min_samples=1)).abs()
    sigma = (spread.rolling_median(window, min_samples=least).shift(1) * MAD_TO_SIGMA).clip(lower_bound=floor)
    return (
        kept.with_columns(middle=middle, sigma=sigma)
        .with_columns(
            median=pl.col("middle").exp(),
            ratio=(pl.col("log") - pl.col("middle")).exp(),
            z=(pl.col("log") - pl.col("middle")) / pl.col("sigma"),
        )
        .drop("log", "middle", "sigma")
    )
