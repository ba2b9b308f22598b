"""Noise whose neighbours are alike: its correlation, and how far a level or a mean of it may be from the truth."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from msgspec import Struct

from forensics.stats.running import block_means
from forensics.stats.spread import MEDIAN_TO_MEAN, Floats, jitter, scatter

_BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256)
_FEWEST_BLOCKS = 12
_KEPT = 0.8
#: Mean of the lowest 80 % of |z|, z standard normal: 2 (phi(0) - phi(q)) / 0.8 with q = Phi^-1(0.9) = 1.2816.
_MEAN_OF_LOWEST = 0.55861
_LAGS, _LONG = 8, 40


def correlation(residuals: Floats, *, bias: float = 4.0) -> float:
    """Correlation of neighbours in [0, 0.98], corrected for short series (Marriott and Pope 1954)."""
    centred = residuals - residuals.mean()
    power = float(centred @ centred)
    if power <= 0 or len(centred) < 3:
        return 0.0
    raw = float(centred[1:] @ centred[:-1]) / power
    return float(min(0.98, max(0.0, raw + (1 + bias * max(raw, 0.0)) / len(centred))))


class Noise(Struct, frozen=True):
    """Robust noise of log values about their moving median.

    `sd` is the standard deviation of one value, and `sd_long` the deviation that makes the error of a level right under
    the correlation rho of neighbours: sd * sqrt((1 + rho) / (1 - rho)).
    """

    sd: float
    sd_long: float

    def of_level(self, count: float) -> float:
        """Standard error of the median of `count` neighbouring values."""
        return MEDIAN_TO_MEAN * self.sd_long / sqrt(max(1.0, count))


def noise_about(y: Floats, middle: Floats) -> Noise:
    """Measure the noise of `y` about its moving median; the standard deviation is at least 1e-4."""
    residual = y - middle
    sd = max(scatter(residual), 1e-4)
    rho = correlation(np.clip(residual, -4 * sd, 4 * sd, out=residual))
    return Noise(sd, sd * sqrt((1 + rho) / (1 - rho)))


class LongRun(Struct, frozen=True):
    """The deviation that makes the error of a mean right: sd(mean of n) is `sd / sqrt(n)`.

    `lag` is the longest block it was measured on, in records; `memory` is the exponent with which it still grew there
    (0 for noise that forgets, towards 0.5 for 1/f noise), so that longer means can be trusted less.
    """

    sd: float
    lag: int
    memory: float

    def over(self, count: float, cap: float) -> float:
        """The deviation for means of `count` records, extrapolated by `memory` to at most `cap` times."""
        return self.sd * min(cap, max(1.0, count / self.lag) ** self.memory)


def long_run(values: Floats) -> LongRun:
    """Measure from differences of neighbouring block means, trimmed, so that a few level shifts do not count.

    The largest of sqrt(L) * sd(mean of L) over block lengths L with at least twelve blocks: batch means as in Flegal
    and Jones, "Batch means and spectral variance estimators" (2010).
    """
    seen = [(1, jitter(values))]
    for length in _BLOCKS:
        if len(values) // length < _FEWEST_BLOCKS:
            break
        steps = np.sort(np.abs(np.diff(block_means(values, length))))
        mean = float(steps[: max(1, int(_KEPT * len(steps)))].mean())
        seen.append((length, sqrt(length) * mean / _MEAN_OF_LOWEST / sqrt(2)))
    sd = max(value for _, value in seen)
    return LongRun(sd, seen[-1][0], _growth(seen[1:]))


def _growth(seen: list[tuple[int, float]]) -> float:
    """Exponent of the growth over the last three block lengths; 0 when small or unknown."""
    if len(seen) < 4:
        return 0.0
    (short, low), (long, high) = seen[-3], seen[-1]
    exponent = log(max(high, 1e-12) / max(low, 1e-12)) / log(long / short)
    return min(exponent, 0.5) if exponent > 0.2 else 0.0


class Mean(Struct, frozen=True):
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
