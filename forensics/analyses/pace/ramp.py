"""Whether a series climbed along a ramp: from where, and whether that explains it better than jumps do."""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt

import numpy as np
from msgspec import Struct

from forensics.analyses.pace.levels import Levels
from forensics.stats.correlation import correlation
from forensics.stats.running import block_means
from forensics.stats.spread import Floats, each_once

_BLOCKS, _KNOTS, _FEWEST = 200, 31, 8
_GAIN = 12.0  # twice the log-likelihood that the ramp must gain over steps
_LONGEST_SHARE, _LONGEST = 0.05, 5  # a rise that takes less of the series, or so few records, is a jump
_FLOOR = 1e-4  # deviation of a log below which no clock is told from another


class Ramp(Struct, frozen=True):
    """A rise from record `first` on by `rise` (log), from the level `before` (log), at `z` deviations.

    `z` counts the noise that the ramp leaves, its correlation included: a ramp is not taken for noise of long memory.
    """

    first: int
    before: float
    rise: float
    z: float


def ramp_of(values: Floats, found: Levels) -> Ramp | None:
    """Fit the best ramp between two knots; None when a jump, or the levels found, explain the series as well.

    The levels have more parameters than the ramp, so they are charged for them (BIC, Schwarz 1978). The noise is what
    the ramp leaves, or what the levels leave, whichever is smaller.
    """
    size = max(1, len(values) // _BLOCKS)
    count = len(values) // size
    if count < _FEWEST:
        return None
    means = block_means(values, size)
    level = float(means.mean())
    means = means - level
    first, last, power = _best_ramp(means)
    shape, slope = _fitted(means, first, last)
    left = means - slope * shape
    own = float(left @ left) / max(1, count - 4) + _FLOOR**2
    rho = correlation(left)
    z = sqrt(power / (own * (1 + rho) / (1 - rho)))
    variance = min(own * (1 + rho) / (1 - rho), found.noise.sd**2 * found.block / size + _FLOOR**2)
    gain = (power - _best_jump(means)) / variance
    gain = min(gain, (power - _stairs(means, found, size)) / variance + _charge(found, count))
    if gain <= _GAIN or last - first <= max(_LONGEST, _LONGEST_SHARE * count):
        return None
    before = level + slope * float(shape.min())
    return Ramp(first * size, before, slope, z)


def _best_jump(means: Floats) -> float:
    n = len(means)
    place = np.arange(2, n - 1)
    sums = np.cumsum(means)[place - 1]
    return float((sums**2 * n / (place * (n - place))).max())


def _best_ramp(means: Floats) -> tuple[int, int, float]:
    """Ends of the ramp that explains most, and its sum of squares: on a grid of knots, then beside the best of them."""
    n = len(means)
    knots = each_once(np.linspace(0, n - 1, _KNOTS).astype(int))
    first, last, _ = _best_of(means, knots, knots)
    near = -(-n // _KNOTS)
    begin = np.arange(max(0, first - near), min(n - 1, first + near) + 1)
    end = np.arange(last - near, min(n - 1, last + near) + 1)
    return _best_of(means, begin, end)


def _best_of(means: Floats, begins: np.ndarray, ends: np.ndarray) -> tuple[int, int, float]:
    """The ramp that explains most of means that add up to 0, and its sum of squares.

    Its product with the means is the mean of their sums up to each of its records, which are added up once for all
    ramps: to multiply each ramp with all means takes ten times as long.
    """
    n = len(means)
    first, last = (edges.ravel() for edges in np.meshgrid(begins, ends, indexing="ij"))
    wanted = last > first + max(2, n // 40)
    first, last = (first[wanted], last[wanted]) if wanted.any() else (np.array([0]), np.array([n - 1]))
    wide, behind = (last - first).astype(np.float64), n - last
    upto = np.concatenate([[0.0], np.cumsum(np.cumsum(means))])
    along = (upto[first] - upto[last]) / wide
    whole = (wide - 1) / 2 + behind
    squares = (wide - 1) * (2 * wide - 1) / (6 * wide) + behind - whole * whole / n
    power = along**2 / squares
    best = int(np.argmax(power))
    return int(first[best]), int(last[best]), float(power[best])


def _fitted(means: Floats, first: int, last: int) -> tuple[Floats, float]:
    """The centred shape of a ramp and how high it rises."""
    shape = np.clip((np.arange(len(means)) - first) / (last - first), 0, 1)
    shape -= shape.mean()
    return shape, float(shape @ means) / float(shape @ shape)


def _stairs(means: Floats, found: Levels, size: int) -> float:
    """Sum of squares that the levels found explain."""
    inner = [min(len(means) - 1, max(1, round(edge * found.block / size))) for edge in found.edges[1:-1]]
    edges = sorted({0, *inner, len(means)})
    return float(sum(means[a:b].sum() ** 2 / (b - a) for a, b in pairwise(edges)))


def _charge(found: Levels, count: int) -> float:
    return (2 * (len(found.means) - 2) - 1) * log(count) + _GAIN if len(found.means) > 2 else float("inf")
