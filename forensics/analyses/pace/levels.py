"""Where the level of a noisy series changed: cumulative sums, cut in two again and again, then pruned."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import numpy as np
from msgspec import Struct

from forensics.stats.changes import best_cut
from forensics.stats.correlation import LongRun, correlation, long_run
from forensics.stats.running import block_means
from forensics.stats.spread import Floats

_MOST_CUTS = 12
_MOST_BLOCKS = 4096


class Bounds(Struct, frozen=True):
    """The bounds of a cut: `z` long-run deviations and `effect` as a difference of logs; `cap` on long memory.

    `cap` is how far the scale may be extrapolated for noise with long memory: 1 not at all, more is stricter.
    """

    z: float
    effect: float
    shortest: int
    cap: float = 1.0


class Levels(Struct, frozen=True):
    """Parts of a series between cuts: `edges` (n + 1 of them), mean of each part, and the noise about them.

    `block` is the number of records behind one value; edges count values, not records.
    """

    edges: tuple[int, ...]
    means: tuple[float, ...]
    noise: LongRun
    block: int

    def size(self, first: int, end: int) -> int:
        """Count the values of the parts `first` up to `end`."""
        return self.edges[end] - self.edges[first]

    def mean(self, first: int, end: int) -> float:
        """Give the mean over the parts `first` up to `end`."""
        sizes = np.diff(self.edges)[first:end]
        return float(np.asarray(self.means)[first:end] @ sizes / sizes.sum())

    def z(self, cut: int, cap: float) -> float:
        """Deviations between the level before part `cut` and the level from it on."""
        before, after = self.size(0, cut), self.size(cut, len(self.means))
        sd = self.noise.over(min(before, after), cap)
        gap = self.mean(cut, len(self.means)) - self.mean(0, cut)
        return gap / (sd * sqrt(1 / before + 1 / after))


def blocks(values: Floats) -> tuple[Floats, int]:
    """Average neighbours until at most 4096 values are left: the values, and how many records each stands for."""
    size = max(1, -(-len(values) // _MOST_BLOCKS))
    return (block_means(values, size), size) if size > 1 else (values, 1)


def levels(values: Floats, block: int, bounds: Bounds) -> Levels:
    """Cut a series where its level changes by more than the bounds say."""
    noise = long_run(values)
    noise = LongRun(max(noise.sd, 1e-4), noise.lag, noise.memory)
    found = _described(values, block, _cuts(values, bounds, noise.sd), noise)
    while len(found.means) > 1:
        worst = _weakest(found, bounds)
        if worst is None:
            break
        found = _described(values, block, [c for c in found.edges[1:-1] if c != worst], noise)
    return found


def _cuts(values: Floats, bounds: Bounds, sd: float) -> list[int]:
    cuts: list[int] = []
    open_parts = [(0, len(values))]
    while open_parts and len(cuts) < _MOST_CUTS:
        first, end = open_parts.pop()
        best = best_cut(values[first:end], bounds.shortest)
        if best is not None and best[1] > bounds.z * sd:
            cuts.append(first + best[0])
            open_parts += [(first, first + best[0]), (first + best[0], end)]
    return sorted(cuts)


def _described(values: Floats, block: int, cuts: list[int], noise: LongRun) -> Levels:
    edges = (0, *cuts, len(values))
    means = tuple(float(values[a:b].mean()) for a, b in pairwise(edges))
    left = values - np.repeat(means, np.diff(edges))
    rho = correlation(left)
    sd = max(noise.sd, float(left.std()) * sqrt((1 + rho) / (1 - rho)))
    return Levels(edges, means, LongRun(sd, noise.lag, noise.memory), block)


def _weakest(found: Levels, bounds: Bounds) -> int | None:
    """The edge that fails its bounds by most; None when all hold."""
    sizes = np.diff(found.edges)
    gaps = np.abs(np.diff(found.means))
    small, large = np.minimum(sizes[:-1], sizes[1:]), np.maximum(sizes[:-1], sizes[1:])
    sds = np.array([found.noise.over(float(count), bounds.cap) for count in small])
    zs = gaps / (sds * np.sqrt(1 / small + 1 / large))
    bad = (zs < bounds.z) | (gaps < bounds.effect / 2)
    return found.edges[1 + int(np.argmin(np.where(bad, zs, np.inf)))] if bad.any() else None
