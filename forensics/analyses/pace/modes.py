"""Two clear modes in a series of log times, such as short and long sequences."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from forensics.case.curves.loss import Floats

_FEWEST, _SEPARATION, _GAP = 40, 4.5, log(1.15)


@dataclass(frozen=True, slots=True)
class Modes:
    """Where two modes part, which share of the values is slow, and how far apart their means are (log)."""

    cut: float
    slow: float
    distance: float


def modes_of(values: Floats) -> Modes | None:
    """Split by Otsu's method (1979); None unless the modes lie 4.5 of their own deviations and 15 % apart."""
    ranked = np.sort(values)
    n = len(ranked)
    if n < _FEWEST:
        return None
    sums = np.cumsum(ranked)
    counts = np.arange(1, n)
    low, high = sums[:-1] / counts, (sums[-1] - sums[:-1]) / (n - counts)
    between = counts * (n - counts) / n * (high - low) ** 2
    edge = max(5, n // 12)
    best = int(np.argmax(between[edge : n - edge])) + edge
    fast, slow = ranked[: best + 1], ranked[best + 1 :]
    within = sqrt((float(fast.var()) * len(fast) + float(slow.var()) * len(slow)) / n)
    distance = float(slow.mean() - fast.mean())
    if distance <= _GAP or distance <= _SEPARATION * within:
        return None
    return Modes(float(ranked[best] + ranked[best + 1]) / 2, len(slow) / n, distance)
