"""Changes of a level and modes of values are those that a search of every cut finds, by sums written out."""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt

import numpy as np
import pytest

from forensics.stats import changes
from forensics.stats.changes import Modes, best_cut, best_split, change_points, cumulated, modes_of
from forensics.stats.spread import Floats

SEEDS = range(12)


def squares(values: Floats) -> float:
    """Squared error about the mean, 0 of no values."""
    return float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0


def searched(values: Floats, shortest: int) -> tuple[float, int]:
    """The largest fall of the squared error by one cut, and the cut, of every one that leaves long enough parts."""
    cuts = range(shortest, len(values) - shortest + 1)
    falls = [(squares(values) - squares(values[:k]) - squares(values[k:]), k) for k in cuts]
    return max(falls, key=lambda fall: (fall[0], -fall[1])) if falls else (0.0, 0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shortest", [1, 2, 5])
def test_the_best_cut_of_a_stretch_is_the_one_that_a_search_of_all_finds(seed: int, shortest: int) -> None:
    values = np.random.default_rng(seed).normal(3.0, 1.0, 30) + 2.0 * (np.arange(30) >= 3 + 2 * seed)
    first, end = seed % 5, 30 - seed % 3
    fall, cut = searched(values[first:end], shortest)
    assert best_split(cumulated(values), first, end, shortest) == (pytest.approx(fall), first + cut)
    assert best_cut(values[first:end], shortest) == (cut, pytest.approx(sqrt(fall)))


@pytest.mark.parametrize("shortest", [1, 2, 7])
def test_a_stretch_of_two_shortest_parts_has_one_cut_and_a_shorter_one_none(shortest: int) -> None:
    values = np.arange(2.0 * shortest)
    assert best_split(cumulated(values), 0, 2 * shortest, shortest)[1] == shortest
    assert best_cut(values, shortest) == (shortest, pytest.approx(sqrt(searched(values, shortest)[0])))
    assert best_split(cumulated(values), 1, 2 * shortest, shortest) == (0.0, 1)
    assert best_cut(values[1:], shortest) is None


def stairs_of(y: Floats, noise: float) -> list[int]:
    """Change points by a search of all cuts: the part whose cut pays most is cut first, and places are sought again."""
    enough, cuts = 3 * noise * noise * log(len(y)), list[int]()
    while True:
        edges = [0, *sorted(cuts), len(y)]
        found = [(searched(y[a:b], 2), a) for a, b in pairwise(edges)]
        (fall, cut), a = max(found, key=lambda one: one[0][0])
        if fall <= enough:
            break
        cuts.append(a + cut)
    for _ in range(2):
        before, kept = 0, list[int]()
        for after in [*sorted(cuts)[1:], len(y)][: len(cuts)]:
            fall, cut = searched(y[before:after], 2)
            if fall > enough:
                kept.append(before + cut)
                before = kept[-1]
        cuts = kept
    return cuts


def stairs(seed: int, count: int = 60) -> Floats:
    rng = np.random.default_rng(seed)
    heights = rng.normal(0.0, 4.0, 9)
    return heights[np.sort(rng.integers(0, 9, count))] + rng.normal(0.0, 1.0, count)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("noise", [0.6, 1.0])
def test_change_points_are_those_of_a_search_of_all_cuts(seed: int, noise: float) -> None:
    y = stairs(seed)
    assert change_points(y, noise) == stairs_of(y, noise)


def test_a_cut_must_pay_three_squared_deviations_for_each_unit_of_the_logarithm() -> None:
    y = np.repeat([0.0, 1.0], 20)  # the cut takes away a squared error of 10
    enough = sqrt(10 / (3 * log(40)))
    assert change_points(y, 0.99 * enough) == [20]
    assert change_points(y, 1.01 * enough) == []


def test_no_more_than_64_changes_are_sought() -> None:
    y: Floats = np.tile(np.repeat([0.0, 1.0], 5), 100)
    assert len(change_points(y, 0.01)) == 64
    assert change_points(y[:100], 0.01) == list(range(5, 100, 5))


def otsu(values: Floats) -> tuple[float, float, float, float]:
    """Cut, slow share, distance of the means and deviation within, of the split with the least deviation within."""
    ranked, n = np.sort(values), len(values)
    edge = max(5, n // 12)
    within = {k: squares(ranked[:k]) + squares(ranked[k:]) for k in range(edge + 1, n - edge + 1)}
    best = min(within, key=lambda k: within[k])
    apart = float(ranked[best:].mean() - ranked[:best].mean())
    return (ranked[best - 1] + ranked[best]) / 2, (n - best) / n, apart, sqrt(within[best] / n)


def parts(found: Modes | None) -> list[float] | None:
    return found and [found.cut, found.slow, found.distance]


@pytest.mark.parametrize("slow", [1, 4, 5, 6, 9, 12, 13, 20, 40, 52, 54, 55, 56])
@pytest.mark.parametrize("count", [60, 61, 150, 156])
def test_modes_are_those_of_the_split_with_the_least_deviation_within(slow: int, count: int) -> None:
    rng = np.random.default_rng(slow)
    values = rng.normal(-1.0, 0.03, count) + 0.5 * (np.arange(count) < slow)
    cut, share, apart, within = otsu(values)
    found = modes_of(rng.permutation(values))
    assert parts(found) == (pytest.approx([cut, share, apart]) if apart > 4.5 * within else None)


@pytest.mark.parametrize("top", [2.0, 2.5])
def test_of_three_levels_the_split_that_takes_away_most_of_the_squared_error_is_the_cut(top: float) -> None:
    values = np.repeat([0.0, 1.0, top], [100, 20, 13])
    cut, share, apart, _ = otsu(values)
    assert parts(modes_of(values)) == pytest.approx([cut, share, apart])
    assert cut == (0.5 if top < 2.3 else 1.75)


@pytest.mark.parametrize("piece", [1, 7, 100])
def test_a_split_that_is_sought_piece_by_piece_is_that_of_the_whole(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(4).normal(size=300) / 20 + np.repeat([0.0, 1.0], [220, 80])
    wanted = modes_of(values)
    monkeypatch.setattr(changes, "_PIECE", piece)
    assert wanted is not None
    assert parts(modes_of(values)) == parts(wanted)


def two(low: float, high: float, count: int = 60, jitter: float = 0.0) -> Floats:
    """Values about two levels, half of them at each, each its level more or less the same."""
    return np.repeat([low, high], count // 2) + np.tile([jitter, -jitter], count // 2)


def test_modes_are_told_from_40_values_on() -> None:
    assert modes_of(two(0.0, 1.0, 40)) is not None
    assert modes_of(two(0.0, 1.0, 40)[1:]) is None


def test_modes_are_more_than_15_percent_apart() -> None:
    assert modes_of(two(0.0, log(1.16))) is not None
    assert modes_of(two(0.0, log(1.14))) is None


def test_modes_are_more_than_four_and_a_half_of_their_own_deviations_apart() -> None:
    assert modes_of(two(0.0, 1.0, jitter=1 / 4.6)) is not None
    assert modes_of(two(0.0, 1.0, jitter=1 / 4.4)) is None


def test_a_mode_holds_five_values_of_60_and_a_twelfth_of_more() -> None:
    def with_slow(slow: int, count: int) -> Modes | None:
        return modes_of(np.where(np.arange(count) < slow, 1.0, 0.0))

    for count, least in ((48, 5), (71, 5), (72, 6), (120, 10)):
        found = with_slow(least, count)
        assert found is not None
        assert (found.cut, found.slow) == (0.5, least / count)
        fewer = with_slow(least - 1, count)
        assert fewer is None or fewer.slow == least / count
