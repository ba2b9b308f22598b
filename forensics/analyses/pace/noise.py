"""How noisy a series of log step times is, and how its noise adds up over many steps: numbers only, no thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from forensics.case.curves.loss import Floats
from forensics.case.curves.noise import MAD_TO_SIGMA

_BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256)
_FEWEST_BLOCKS = 12
_KEPT = 0.8
_MEAN_OF_LOWEST = 0.5744  # mean of the lowest 80 % of |z|, z standard normal


@dataclass(frozen=True, slots=True)
class LongRun:
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


def spread(values: Floats) -> float:
    """Median absolute deviation, scaled to the standard deviation of a normal distribution."""
    return MAD_TO_SIGMA * float(np.median(np.abs(values - np.median(values)))) if len(values) else 0.0


def jitter(values: Floats) -> float:
    """Standard deviation of independent noise, from differences of neighbours: level shifts do not count."""
    steps = np.abs(np.diff(values))
    return MAD_TO_SIGMA * float(np.median(steps)) / sqrt(2) if len(steps) > 1 else 0.0


def long_run(values: Floats) -> LongRun:
    """Measure from differences of neighbouring block means, trimmed, so that a few level shifts do not count.

    The largest of sqrt(L) * sd(mean of L) over block lengths L with at least twelve blocks: batch means as in Flegal
    and Jones, "Batch means and spectral variance estimators" (2010).
    """
    seen = [(1, jitter(values))]
    for length in _BLOCKS:
        count = len(values) // length
        if count < _FEWEST_BLOCKS:
            break
        steps = np.sort(np.abs(np.diff(values[: count * length].reshape(count, length).mean(axis=1))))
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


def correlation(residuals: Floats, *, bias: float = 4.0) -> float:
    """Correlation of neighbours in [0, 0.98], corrected for short series (Marriott and Pope 1954)."""
    centred = residuals - residuals.mean()
    power = float(centred @ centred)
    if power <= 0 or len(centred) < 3:
        return 0.0
    raw = float(centred[1:] @ centred[:-1]) / power
    return float(min(0.98, max(0.0, raw + (1 + bias * max(raw, 0.0)) / len(centred))))
