"""How far values lie apart, by measures that single strays hardly move."""

from __future__ import annotations

from math import sqrt

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Median absolute deviation to standard deviation of a normal distribution (Hampel 1974).
MAD_TO_SIGMA = 1.4826
#: Standard error of a median in units of that of a mean, for normal noise: sqrt(pi / 2).
MEDIAN_TO_MEAN = 1.2533


def median(values: pl.Series) -> float:
    """Median as a float; 0 of an empty series."""
    found = values.median()
    return float(found) if isinstance(found, int | float) else 0.0


def scatter(residuals: Floats) -> float:
    """Standard deviation about 0 by the median of the absolute values; 0 of no values."""
    return MAD_TO_SIGMA * float(np.median(np.abs(residuals))) if len(residuals) else 0.0


def spread(values: Floats) -> float:
    """Standard deviation about the median by the median absolute deviation; 0 of no values."""
    return scatter(values - np.median(values)) if len(values) else 0.0


def jitter(values: Floats) -> float:
    """Standard deviation of independent noise, from differences of neighbours: level shifts do not count."""
    return scatter(np.diff(values)) / sqrt(2) if len(values) > 2 else 0.0


def bending(values: Floats) -> float:
    """Standard deviation of independent noise, from second differences: neither shifts nor a slope count."""
    return scatter(np.diff(values, 2)) / sqrt(6)


def relative_spread(values: pl.Series) -> float:
    """Robust standard deviation over the median (0 when the median is not positive)."""
    middle = median(values)
    return MAD_TO_SIGMA * median((values - middle).abs()) / middle if middle > 0 else 0.0


def winsorised(values: Floats, sigmas: float = 3.0) -> Floats:
    """Pull values to at most `sigmas` robust deviations from the median; the outermost 0.5 % where that is many."""
    middle, sd = float(np.median(values)), spread(values)
    if sd <= 0:
        return values
    pulled = np.clip(values, middle - sigmas * sd, middle + sigmas * sd)
    return pulled if int(np.count_nonzero(pulled - values)) < 0.1 * len(values) else trimmed(values)


def trimmed(values: Floats) -> Floats:
    """Pull the outermost 0.5 % on either side to the next value."""
    low: float
    high: float
    low, high = np.quantile(values, [0.005, 0.995]).tolist()
    return np.clip(values, low, high)
