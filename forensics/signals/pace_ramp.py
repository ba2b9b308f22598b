"""Whether a series rose in a jump or along a ramp."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log

import numpy as np

from forensics.signals.loss_curve import Floats
from forensics.signals.pace_levels import Levels

_BLOCKS, _KNOTS, _FEWEST = 200, 31, 8
_GAIN = 12.0  # twice the log-likelihood that the ramp must gain over steps


@dataclass(frozen=True, slots=True)
class Ramp:
    """A rise from record `first` to record `last`, and twice the log-likelihood it gains over a jump."""

    first: int
    last: int
    gain: float


def ramp_of(values: Floats, found: Levels) -> Ramp | None:
    """Fit the best ramp between two knots; None when a jump, or the levels found, explain the series as well.

    The levels have more parameters than the ramp, so they are charged for them (BIC, Schwarz 1978).
    """
    size = max(1, len(values) // _BLOCKS)
    count = len(values) // size
    if count < _FEWEST:
        return None
    means = values[: count * size].reshape(count, size).mean(axis=1)
    means = means - means.mean()
    variance = found.noise.sd**2 * found.block / size + 1e-12
    first, last, power = _best_ramp(means)
    gain = (power - _best_jump(means)) / variance
    gain = min(gain, (power - _stairs(means, found, size)) / variance + _charge(found, count))
    if gain <= _GAIN or last - first <= max(3, 0.05 * count):
        return None
    return Ramp(first * size, last * size, gain)


def _best_jump(means: Floats) -> float:
    n = len(means)
    place = np.arange(2, n - 1)
    sums = np.cumsum(means)[place - 1]
    return float((sums**2 * n / (place * (n - place))).max())


def _best_ramp(means: Floats) -> tuple[int, int, float]:
    n = len(means)
    knots = np.unique(np.linspace(0, n - 1, _KNOTS).astype(int))
    pairs = [(int(a), int(b)) for a in knots for b in knots if b > a + max(2, n // 40)]
    ends = np.array(pairs)
    shapes = np.clip((np.arange(n) - ends[:, :1]) / (ends[:, 1:] - ends[:, :1]), 0, 1)
    shapes -= shapes.mean(axis=1, keepdims=True)
    power = (shapes @ means) ** 2 / (shapes * shapes).sum(axis=1)
    best = int(np.argmax(power))
    return *pairs[best], float(power[best])


def _stairs(means: Floats, found: Levels, size: int) -> float:
    """Sum of squares that the levels found explain."""
    inner = [min(len(means) - 1, max(1, round(edge * found.block / size))) for edge in found.edges[1:-1]]
    edges = sorted({0, *inner, len(means)})
    return float(sum(means[a:b].sum() ** 2 / (b - a) for a, b in pairwise(edges)))


def _charge(found: Levels, count: int) -> float:
    return (2 * (len(found.means) - 2) - 1) * log(count) + _GAIN if len(found.means) > 2 else float("inf")
