"""Running medians against the median of each window by itself."""

from __future__ import annotations

from math import e, exp, inf, isnan, log
from statistics import median

import numpy as np
import polars as pl
import pytest

from forensics.stats.running import (
    centred_median,
    edge_median,
    logs,
    past_median,
    ratio_of,
    robust,
)

VALUES = np.random.default_rng(5).normal(3.0, 1.0, 41)


@pytest.mark.parametrize("window", [1, 3, 5, 9, 39, 41])
def test_a_centred_median_is_that_of_the_values_about_each_one_mirrored_at_the_ends(window: int) -> None:
    n, half = len(VALUES), window // 2

    def place(at: int) -> int:
        return -at if at < 0 else 2 * (n - 1) - at if at >= n else at

    wanted = [median(VALUES[place(k)] for k in range(at - half, at + half + 1)) for at in range(n)]
    assert centred_median(VALUES, window).tolist() == wanted


def test_a_window_wider_than_the_series_ends_with_it() -> None:
    assert centred_median(np.array([1.0, 5.0, 3.0]), 99).tolist() == [3.0, 5.0, 3.0]
    assert centred_median(np.array([1.0, 5.0]), 99).tolist() == [5.0, 1.0]
    assert centred_median(np.zeros(0), 5).tolist() == []


@pytest.mark.parametrize("width", [1, 3, 7, 61])
def test_an_edge_median_repeats_the_first_and_the_last_value(width: int) -> None:
    n, half = len(VALUES), width // 2
    wanted = [median(VALUES[min(max(k, 0), n - 1)] for k in range(at - half, at + half + 1)) for at in range(n)]
    assert edge_median(VALUES, width).tolist() == wanted


@pytest.mark.parametrize(("window", "least"), [(8, 5), (8, 1), (3, 5), (41, 5)])
def test_a_past_median_is_that_of_the_values_before_each_one(window: int, least: int) -> None:
    found = past_median(VALUES, window, least)
    for at in range(len(VALUES)):
        before = VALUES[max(0, at - window) : at].tolist()
        assert isnan(found[at]) if len(before) < min(least, window) else found[at] == median(before)


def test_five_values_are_past_enough_and_an_empty_series_has_none() -> None:
    assert [isnan(one) for one in past_median(np.arange(7.0), 50)] == [True] * 5 + [False, False]
    assert past_median(np.zeros(0), 5).tolist() == []


def test_a_ratio_ends_near_the_largest_number() -> None:
    assert (ratio_of(1.0), ratio_of(-2.0), ratio_of(700.0)) == (e, exp(-2.0), exp(700.0))
    assert ratio_of(1e9) == exp(700.0) < inf


def test_logarithms_are_of_positive_values_and_tell_their_places() -> None:
    found, places = logs(np.array([e, 0.0, -1.0, 1.0]))
    assert ([*found], [*places]) == ([1.0, 0.0], [0, 3])
    assert [[*part] for part in logs(np.array([1.0, e]))] == [[0.0, 1.0], [0, 1]]
    assert [[*part] for part in logs(np.zeros(0))] == [[], []]


@pytest.mark.parametrize(("window", "least", "floor"), [(50, 5, 0.02), (6, 3, 0.5), (6, 6, 0.0)])
def test_a_height_is_measured_in_deviations_about_the_running_median_of_the_past(
    window: int, least: int, floor: float
) -> None:
    values = np.exp(np.random.default_rng(2).normal(0.0, 0.3, 90))
    found = robust(pl.DataFrame({"value": values}), window=window, least=least, floor=floor)
    heights = [log(v) for v in values]
    apart = [abs(heights[at] - median(heights[max(0, at - window + 1) : at + 1])) for at in range(90)]
    for at, row in enumerate(found.iter_rows(named=True)):
        before = heights[max(0, at - window) : at]
        if len(before) < least:
            assert (row["median"], row["ratio"], row["z"]) == (None, None, None)
            continue
        sigma = max(floor, 1.4826 * median(apart[max(0, at - window) : at]))
        assert row["median"] == pytest.approx(exp(median(before)))
        assert row["ratio"] == pytest.approx(values[at] / exp(median(before)))
        assert row["z"] == pytest.approx((heights[at] - median(before)) / sigma)


def test_unless_asked_otherwise_50_records_are_the_past_and_5_enough_of_it() -> None:
    values = np.exp(np.random.default_rng(2).normal(0.0, 0.3, 120))
    by_hand = robust(pl.DataFrame({"value": values}), window=50, least=5, floor=0.02)
    assert robust(pl.DataFrame({"value": values})).equals(by_hand)
    flat = robust(pl.DataFrame({"value": [1.0] * 9 + [exp(0.1)]}))
    assert flat["z"][-1] == pytest.approx(0.1 / 0.02)
