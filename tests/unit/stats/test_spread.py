"""Measures of spread, each by its own words."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from statistics import median

import numpy as np
import polars as pl
import pytest

from forensics.stats import spread as module
from forensics.stats.spread import bending, jitter, quantiles_of, relative_spread, scatter, spread, trimmed, winsorised

VALUES = np.random.default_rng(8).normal(2.0, 1.0, 51)


def test_each_measure_is_the_median_of_what_it_says() -> None:
    every: list[float] = VALUES.tolist()
    middle = median(every)
    steps = [b - a for a, b in pairwise(every)]
    bends = [b - a for a, b in pairwise(steps)]
    assert scatter(VALUES) == pytest.approx(1.4826 * median(map(abs, every)))
    assert spread(VALUES) == pytest.approx(1.4826 * median(abs(v - middle) for v in every))
    assert jitter(VALUES) == pytest.approx(1.4826 * median(map(abs, steps)) / sqrt(2))
    assert bending(VALUES) == pytest.approx(1.4826 * median(map(abs, bends)) / sqrt(6))
    assert relative_spread(pl.Series(VALUES)) == pytest.approx(spread(VALUES) / middle)


def test_three_values_have_jitter_and_two_none() -> None:
    assert jitter(np.array([1.0, 2.0, 4.0])) == pytest.approx(1.4826 * 1.5 / sqrt(2))
    assert jitter(np.array([1.0, 4.0])) == 0.0


def test_no_values_have_a_median_of_0_and_no_spread() -> None:
    assert (module.median(pl.Series([], dtype=pl.Float64)), module.median(pl.Series([3, 4]))) == (0.0, 3.5)
    assert (relative_spread(pl.Series([], dtype=pl.Float64)), relative_spread(pl.Series([-1.0, 0.0, 1.0]))) == (
        0.0,
        0.0,
    )


@pytest.mark.parametrize("share", [0.0, 0.001, 0.13, 0.49, 0.5, 0.51, 0.9, 1.0])
def test_a_quantile_lies_between_the_two_values_about_its_place(share: float) -> None:
    for values in (VALUES, VALUES[:1], VALUES[:2], VALUES[:4]):
        ranked = sorted(values.tolist())
        place = share * (len(ranked) - 1)
        low = int(place)
        high = min(low + 1, len(ranked) - 1)
        assert quantiles_of(values, (share,)) == [
            pytest.approx(ranked[low] + (ranked[high] - ranked[low]) * (place - low))
        ]


def test_strays_are_pulled_to_three_deviations_of_the_median() -> None:
    values = np.append(VALUES, [1e6, -1e6])
    middle, sd = median(values.tolist()), spread(values)
    wanted = [min(middle + 3 * sd, max(middle - 3 * sd, v)) for v in values.tolist()]
    assert winsorised(values).tolist() == pytest.approx(wanted)
    assert winsorised(values, 1.0).tolist() != pytest.approx(wanted)


@pytest.mark.parametrize(("strays", "is_trimmed"), [(9, False), (10, True)])
def test_a_tenth_of_strays_are_too_many_to_pull_in(strays: int, is_trimmed: bool) -> None:
    values = np.append(np.tile([1.0, 1.1, 0.9], 40)[: 100 - strays], np.full(strays, 50.0))
    assert (winsorised(values).tolist() == trimmed(values).tolist()) is is_trimmed
    assert (winsorised(values).max() < 5) is not is_trimmed


def test_values_without_spread_stay_as_they_are() -> None:
    values = np.append(np.full(30, 1.0), 9.0)
    assert winsorised(values).tolist() == values.tolist()


def test_half_a_percent_on_either_side_is_pulled_to_the_next_value() -> None:
    values = np.arange(1001.0)
    assert trimmed(values).tolist() == np.clip(values, 5.0, 995.0).tolist()
