"""Robust lines against the slopes of all pairs, and trends against every pair of parts."""

from __future__ import annotations

from itertools import combinations
from math import sqrt
from statistics import correlation, median

import numpy as np
import polars as pl
import pytest

from forensics.stats.spread import Floats
from forensics.stats.trend import Line, line_of, together, trend_of

RNG = np.random.default_rng(4)


def all_pairs(t: list[float], y: list[float]) -> Line:
    """A line whose rise is the median of the slopes of all pairs of distinct times."""
    pairs = combinations(range(len(t)), 2)
    slopes = sorted((y[j] - y[i]) / (t[j] - t[i]) for i, j in pairs if t[j] > t[i])

    def at(share: float) -> float:
        place = share * (len(slopes) - 1)
        low = int(place)
        return slopes[low] + (slopes[min(low + 1, len(slopes) - 1)] - slopes[low]) * (place - low)

    rise = at(0.5)
    return Line(rise, median(b - rise * a for a, b in zip(t, y, strict=True)))


def line(found: Line) -> tuple[float, float]:
    return found.rise, found.start


@pytest.mark.parametrize("count", [2, 3, 40, 300])
def test_a_line_is_the_median_of_the_slopes_of_all_pairs(count: int) -> None:
    t, y = np.sort(RNG.random(count)), RNG.normal(0.0, 1.0, count)
    assert line(line_of(t, y)) == pytest.approx(line(all_pairs(t.tolist(), y.tolist())))


def test_samples_at_one_time_have_no_slope_between_them() -> None:
    t, y = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 4.0, 7.0])
    assert line(line_of(t, y)) == pytest.approx(line(all_pairs(t.tolist(), y.tolist())))
    assert line_of(np.zeros(3), np.array([5.0, 9.0, 1.0])) == Line(0.0, 5.0)
    assert line_of(np.zeros(0), np.zeros(0)) == Line(0.0, 0.0)
    assert line_of(np.zeros(1), np.ones(1)) == Line(0.0, 1.0)


@pytest.mark.parametrize("count", [301, 1000])
def test_of_more_than_300_samples_as_many_spread_evenly_are_taken(count: int) -> None:
    t, y = np.sort(RNG.random(count)), RNG.normal(0.0, 1.0, count)
    chosen = [int(at * (count - 1) / 299) for at in range(300)]
    wanted = all_pairs(t[chosen].tolist(), y[chosen].tolist())
    assert line(line_of(t, y)) == pytest.approx(line(wanted))
    assert line(line_of(t, y)) != pytest.approx(line(all_pairs(t.tolist(), y.tolist())))


@pytest.mark.parametrize(("count", "parts"), [(20, 20), (79, 20), (80, 20), (213, 20), (31, 6)])
@pytest.mark.parametrize("slope", [0.0, 0.02, -0.02])
def test_a_trend_counts_every_pair_of_parts_that_rises_less_those_that_fall(
    count: int, parts: int, slope: float
) -> None:
    values: Floats = np.round(RNG.normal(5.0, 1.0, count) + slope * np.arange(count), 1)
    found, size = trend_of(values, parts=parts), count // parts
    assert found is not None
    last = values[count - size * parts :].reshape(parts, size)
    middles = [median(part.tolist()) for part in last]
    score = sum((b > a) - (b < a) for a, b in combinations(middles, 2))
    assert found.tau == pytest.approx(score / (parts * (parts - 1) / 2))
    assert found.z == pytest.approx(score / sqrt(parts * (parts - 1) * (2 * parts + 5) / 18))
    fifth = count // 5
    assert (found.first, found.last) == (median(values[:fifth].tolist()), median(values[-fifth:].tolist()))
    left = [abs(v - m) for part, m in zip(last, middles, strict=True) for v in part.tolist()]
    assert found.noise == pytest.approx(1.4826 * median(left))


def test_a_trend_needs_a_value_for_each_part_and_twenty_parts_unless_asked_for_fewer() -> None:
    assert trend_of(np.arange(19.0)) is None
    assert trend_of(np.arange(20.0)) == trend_of(np.arange(20.0), parts=20)
    few = trend_of(np.array([1.0, 2.0, 3.0]), parts=3)
    assert few is not None
    assert (few.first, few.last, few.tau) == (1.0, 3.0, 1.0)


def frame(at: list[int], value: list[float]) -> pl.DataFrame:
    return pl.DataFrame({"at": at, "value": value})


def test_series_go_together_over_the_steps_that_both_have() -> None:
    a, b = [1.0, 2.0, 4.0, 3.0], [2.0, 1.0, 5.0, 9.0]
    found = together(frame([1, 2, 3, 4, 9], [*a, 50.0]), frame([0, 1, 2, 3, 4], [70.0, *b]))
    assert found == pytest.approx(correlation(a, b))


def test_two_common_steps_and_a_flat_series_tell_nothing_and_three_do() -> None:
    rising = frame([1, 2, 3], [1.0, 2.0, 3.0])
    assert together(rising, rising) == pytest.approx(1.0)
    assert together(rising, rising.head(2)) == 0.0
    assert together(rising, frame([1, 2, 3], [5.0, 5.0, 5.0])) == 0.0
