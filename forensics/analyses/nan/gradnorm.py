"""How far a positive series stands above its own recent past, on a logarithmic scale."""

from __future__ import annotations

import polars as pl

_TO_SIGMA = 1.4826  # median absolute deviation to standard deviation of a normal distribution


def robust(rows: pl.DataFrame, *, window: int = 50, least: int = 5, floor: float = 0.02) -> pl.DataFrame:
    """Finite positive rows with `median` of the previous ones, `ratio` to it, and robust `z` of the logarithm.

    `window` and `least` count records, the present one excluded; `floor` is the least standard deviation in log units,
    so that a series printed with few digits has no infinite z. Rows with too little past have null `ratio` and `z`.
    """
    kept = rows.filter(pl.col("value").is_finite() & (pl.col("value") > 0)).with_columns(log=pl.col("value").log())
    middle = pl.col("log").rolling_median(window, min_samples=least).shift(1)
    spread = (pl.col("log") - pl.col("log").rolling_median(window, min_samples=1)).abs()
    sigma = (spread.rolling_median(window, min_samples=least).shift(1) * _TO_SIGMA).clip(lower_bound=floor)
    return (
        kept.with_columns(middle=middle, sigma=sigma)
        .with_columns(
            median=pl.col("middle").exp(),
            ratio=(pl.col("log") - pl.col("middle")).exp(),
            z=(pl.col("log") - pl.col("middle")) / pl.col("sigma"),
        )
        .drop("log", "middle", "sigma")
    )
