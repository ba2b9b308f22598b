"""Where the level of a series changes, and whether its values have two modes."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from msgspec import Struct

from forensics.stats.spread import Floats

#: So many places of a cut are looked at together.
_PIECE = 1_000_000
_MOST_SPLITS = 64
_SHORTEST = 2
_FEWEST, _SEPARATION, _GAP = 40, 4.5, log(1.15)


def best_split(sums: Floats, first: int, end: int, shortest: int) -> tuple[float, int]:
    """Give the largest fall of the squared error by one cut of `first` up to `end`, and the cut (Page 1954).

    `sums` are the cumulative sums of the values, a 0 before them; neither part is shorter than `shortest`, which is 1
    at least. A stretch that is too short for a cut gives 0 and `first`.
    """
    if end - first < 2 * shortest:
        return 0.0, first
    cut = np.arange(first + shortest, end - shortest + 1)
    size, lengths = end - first, cut - first
    left = sums[cut] - sums[first] - (sums[end] - sums[first]) * lengths / size
    gains = left**2 * size / (lengths * (size - lengths))
    best = int(np.argmax(gains))
    return float(gains[best]), int(cut[best])


def best_cut(values: Floats, shortest: int) -> tuple[int, float] | None:
    """The cut with the largest |difference of means| * sqrt(k (n - k) / n), and that value (Page 1954)."""
    if len(values) < 2 * shortest:
        return None
    gain, cut = best_split(cumulated(values), 0, len(values), shortest)
    return cut, sqrt(gain)


def cumulated(values: Floats) -> Floats:
    """Cumulative sums of the values less their mean, a 0 before them."""
    return np.concatenate(([0.0], np.cumsum(values - values.mean())))


def change_points(y: Floats, noise: float) -> list[int]:
    """Find where the mean changes: split in two while the squared error falls by 3 sigma^2 log n (Scott, Knott 1974).

    Each place is then sought again between its neighbours, and dropped when it no longer pays.
    """
    n = len(y)
    enough = 3 * noise**2 * log(n)
    sums = cumulated(y)
    cuts: list[int] = []
    todo = [(0, n)]
    while len(cuts) < _MOST_SPLITS:
        gains = [best_split(sums, a, b, _SHORTEST) for a, b in todo]
        best = int(np.argmax([gain for gain, _ in gains]))
        gain, at = gains[best]
        if gain <= enough:
            break
        a, b = todo.pop(best)
        cuts.append(at)
        todo += [(a, at), (at, b)]
    for _ in range(2):
        cuts = _placed_again(sums, sorted(cuts), enough)
    return cuts


def _placed_again(sums: Floats, cuts: list[int], enough: float) -> list[int]:
    kept: list[int] = []
    for i in range(len(cuts)):
        before = kept[-1] if kept else 0
        after = cuts[i + 1] if i + 1 < len(cuts) else len(sums) - 1
        gain, at = best_split(sums, before, after, _SHORTEST)
        if gain > enough:
            kept.append(at)
    return kept


class Modes(Struct, frozen=True):
    """Where two modes part, which share of the values is slow, and how far apart their means are (log)."""

    cut: float
    slow: float
    distance: float


def modes_of(values: Floats) -> Modes | None:
    """Split by Otsu's method (1979); None unless the modes are 4.5 of their own deviations and 15 % apart."""
    ranked = np.sort(values)
    n = len(ranked)
    if n < _FEWEST:
        return None
    edge = max(5, n // 12)
    best = _otsu(np.cumsum(ranked), edge, n - edge)
    fast, slow = ranked[: best + 1], ranked[best + 1 :]
    within = sqrt((float(fast.var()) * len(fast) + float(slow.var()) * len(slow)) / n)
    distance = float(slow.mean() - fast.mean())
    if distance <= _GAP or distance <= _SEPARATION * within:
        return None
    return Modes(float(ranked[best] + ranked[best + 1]) / 2, len(slow) / n, distance)


def _otsu(sums: Floats, first: int, end: int) -> int:
    """The last place of the fast ones, of `first` up to `end`, by the cumulative sums of ranked values."""
    n, found = len(sums), list[tuple[float, int]]()
    for begin in range(first, end, _PIECE):
        upto = sums[begin : min(begin + _PIECE, end)]
        counts = np.arange(begin + 1, begin + 1 + len(upto))
        between = (sums[-1] - upto) / (n - counts)  # the mean of the slow ones
        between -= upto / counts
        between *= between
        between *= counts * (n - counts)
        best = int(np.argmax(between))
        found.append((float(between[best]), -(begin + best)))
    return -max(found)[1]
