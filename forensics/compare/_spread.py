"""The mean of a correlated series, and how far it may be from the truth."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from forensics.analyses.pace.noise import correlation, spread
from forensics.case.curves.loss import Floats

_LAGS, _LONG = 8, 40


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its standard error, the degrees of freedom of that, and how many independent values it is worth."""

    value: float
    se: float
    df: float
    effective: float
    count: int

    @property
    def sd_long(self) -> float:
        """Deviation whose n-th root law gives the standard error: `se * sqrt(count)`."""
        return self.se * sqrt(self.count)


def mean_of(values: Floats) -> Mean:
    """Mean with the largest of three standard errors: AR(1), slow decay under white noise, batch means.

    AR(1) with the bias correction of Marriott and Pope (1954); the slow decay, rho(k) = rho(1) phi^(k - 1), is fitted
    on lags 1 to 8; overlapping batch means after Meketon and Schmeiser (1984). Needs at least two values.
    """
    n = len(values)
    left = values - values.mean()
    sd = float(values.std(ddof=1))
    factor = max(_ar1_factor(left), _slow_factor(left))
    effective = max(3.0, n / factor)
    se, df = sd / sqrt(effective), effective - 1
    for length, margin in ((round(sqrt(n)), 1.15), (n // 6, 1.6)) if n >= _LONG else ():
        batch = _batch_se(left, length)
        if batch > margin * se:
            se, df = batch, min(df, max(2.0, 1.5 * n / length - 1))
            effective = min(effective, (sd / batch) ** 2)
    return Mean(float(values.mean()), se, df, effective, n)


def _ar1_factor(left: Floats) -> float:
    """How much more the mean varies than for independent values; 1 when the correlation is not significant."""
    rho = correlation(left, bias=3.0)
    if len(left) < 8 or rho <= 1 / sqrt(len(left)):
        return 1.0
    rho = min(rho, 0.97)
    return (1 + rho) / (1 - rho)


def _slow_factor(left: Floats) -> float:
    n, power = len(left), float(left @ left)
    if n < _LONG or power <= 0:
        return 1.0
    acf = np.array([float(left[k:] @ left[:-k]) / power for k in range(1, _LAGS + 1)]) + 1 / n
    near, far = float(acf[:4].mean()), float(acf[4:].mean())
    if near <= 1.6 / sqrt(n) or acf[0] <= 0:
        return 1.0
    decay = min(0.985, max(0.0, (far / near) ** 0.25 if far > 0 else 0.0))
    decay = min(0.985, decay + (1 + 3 * decay) / n)
    first = near * 4 * (1 - decay) / (1 - decay**4)
    return 1 + 2 * min(max(first, 0.0), 1.0) / (1 - decay)


def _batch_se(left: Floats, length: int) -> float:
    n = len(left)
    sums = np.concatenate([[0.0], np.cumsum(left)])
    means = (sums[length:] - sums[:-length]) / length
    return sqrt(float((means * means).mean()) * length / n * n / (n - length))


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
