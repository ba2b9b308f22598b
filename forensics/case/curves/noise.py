"""How noisy a loss is about its own level, on a logarithmic scale: levels and spreads only, no thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
import polars as pl

from forensics.case.curves.loss import Floats

MAD_TO_SIGMA = 1.4826  # median absolute deviation to standard deviation of a normal distribution
MEDIAN_TO_MEAN = 1.2533  # standard error of a median in units of that of a mean, for normal noise: sqrt(pi / 2)


@dataclass(frozen=True, slots=True)
class Noise:
    """Robust noise of log values about their moving median.

    `sd` is the standard deviation of one value, `rho` its correlation with the next, and `sd_long` the deviation that
    makes the error of a level right under that correlation: sd * sqrt((1 + rho) / (1 - rho)).
    """

    sd: float
    rho: float
    sd_long: float

    def of_level(self, count: float) -> float:
        """Standard error of the median of `count` neighbouring values."""
        return MEDIAN_TO_MEAN * self.sd_long / sqrt(max(1.0, count))


def ratio_of(difference: float) -> float:
    """Turn a difference of logarithms into a ratio, at most e to the 700th, near the largest number."""
    return exp(min(difference, 700.0))


def logs(values: Floats) -> tuple[Floats, Floats]:
    """Give the logarithms of the positive values, and the positions those had."""
    if len(values) and values.min() > 0:
        return np.log(values), np.arange(len(values), dtype=np.float64)
    kept = np.flatnonzero(values > 0)
    return np.log(values[kept]), kept.astype(np.float64)


def centred_median(y: Floats, window: int) -> Floats:
    """Median of `window` (odd) values around each one; the two ends are mirrored."""
    half = min(window // 2, max(0, len(y) - 1))
    if not half:
        return y
    padded = np.concatenate([y[1 : half + 1][::-1], y, y[-half - 1 : -1][::-1]])
    width = 2 * half + 1
    return pl.Series(padded).rolling_median(width, min_samples=width).to_numpy()[width - 1 :]


def past_median(y: Floats, window: int, least: int = 5) -> Floats:
    """Median of the `window` values before each one, itself excluded; NaN where fewer than `least` are known."""
    found = pl.Series(y).rolling_median(window, min_samples=min(least, window)).shift(1)
    return found.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def noise_about(y: Floats, middle: Floats) -> Noise:
    """Measure the noise of `y` about its moving median; the standard deviation is at least 1e-4."""
    residual = y - middle
    sd = max(MAD_TO_SIGMA * float(np.median(np.abs(residual))), 1e-4)
    clipped = np.clip(residual, -4 * sd, 4 * sd)
    centred = clipped - clipped.mean()
    power = float(centred @ centred)
    rho = float(centred[1:] @ centred[:-1]) / power if power > 0 else 0.0
    rho = min(max(rho + (1 + 4 * max(rho, 0.0)) / len(y), 0.0), 0.98)  # Marriott and Pope 1954: bias of a short series
    return Noise(sd, rho, sd * sqrt((1 + rho) / (1 - rho)))
