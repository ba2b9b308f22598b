"""Medians and quantiles are those of numpy, whatever the values are."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from forensics.stats import running
from forensics.stats.running import centred_median, moving_median, past_median
from forensics.stats.spread import Floats, each_once, median_of, quantile_of_each, quantiles_of

_RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    "values",
    [
        _RNG.normal(size=1),
        _RNG.normal(size=2),
        _RNG.normal(size=499),
        _RNG.normal(size=500),
        _RNG.normal(size=1_001),
        _RNG.normal(size=20_001),
        np.arange(20_000) % 10 // 9 * 1_000_000_000,  # times in whole seconds, ten records in each
        np.repeat([1.0, 2.0], 10_000),
        np.round(_RNG.normal(size=1_000), 1),
        np.zeros(8),
        np.array([1.0, np.inf, -np.inf, 3.0]),
        np.array([5, 3, 4, 9]),
    ],
)
def test_a_median_is_that_of_numpy(values: NDArray[np.float64] | NDArray[np.int64]) -> None:
    assert median_of(values) == np.median(values)


@pytest.mark.parametrize(
    "values",
    [np.array([1.0, nan, 2.0]), np.array([nan, 1.0, 2.0, 3.0]), np.append(np.zeros(20_000), nan), np.zeros(0)],
)
def test_a_median_of_no_number_is_nan(values: Floats) -> None:
    assert isnan(median_of(values))


@pytest.mark.parametrize("count", [1, 2, 7, 300, 1_001])
def test_quantiles_are_those_of_numpy(count: int) -> None:
    values, shares = _RNG.normal(size=count), (0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 1.0)
    assert quantiles_of(values, shares) == np.quantile(values, shares).tolist()


@pytest.mark.parametrize(("rows", "width"), [(0, 20), (1, 1), (300, 20), (300, 7)])
def test_a_quantile_of_each_row_is_that_of_numpy(rows: int, width: int) -> None:
    values = _RNG.normal(size=(rows, width))
    assert quantile_of_each(values, 0.25).tolist() == np.quantile(values, 0.25, axis=1).tolist()


@pytest.mark.parametrize("values", [[], [2.0], [3, 1, 3, 3, 2, 1], [0.5, -np.inf, 0.5, np.inf, np.inf]])
def test_each_number_is_given_once_as_numpy_does(values: list[float]) -> None:
    assert each_once(np.array(values)).tolist() == np.unique(values).tolist()


@pytest.mark.parametrize("values", [np.array([1.0, nan, 2.0]), np.zeros(0)])
def test_a_quantile_of_no_number_is_nan(values: Floats) -> None:
    assert all(map(isnan, quantiles_of(values, (0.1, 0.9))))


@pytest.mark.parametrize("count", [0, 4, 8, 20, 300])
@pytest.mark.parametrize("width", [1, 7, 8, 51])
def test_moving_medians_of_few_values_are_those_of_polars_to_the_last_bit(count: int, width: int) -> None:
    values = _RNG.normal(size=count)
    theirs = pl.Series(values, dtype=pl.Float64).rolling_median(width, min_samples=width).drop_nulls()
    assert moving_median(values, width).tolist() == theirs.to_list()


@pytest.mark.parametrize("count", [0, 4, 8, 20, 300])
@pytest.mark.parametrize("window", [3, 7, 8, 51])
def test_medians_of_the_past_are_those_of_polars_before_each_value(count: int, window: int) -> None:
    values = _RNG.normal(size=count)
    theirs = pl.Series(values, dtype=pl.Float64).rolling_median(window, min_samples=min(5, window)).shift(1)
    np.testing.assert_array_equal(past_median(values, window), theirs.to_numpy())
    middle = centred_median(values, window)
    np.testing.assert_array_equal(past_median(values, window, middle=middle), theirs.to_numpy())


@pytest.mark.parametrize(("width", "least"), [(1, 1), (7, 5), (51, 2), (400, 400)])
def test_medians_that_are_made_piece_by_piece_are_those_of_the_whole(
    width: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = _RNG.normal(size=6_000)
    wanted = moving_median(values, width).tolist(), past_median(values, width, least).tolist()
    monkeypatch.setattr(running, "_PIECE", 500)
    assert moving_median(values, width).tolist() == wanted[0]
    assert np.array_equal(past_median(values, width, least), wanted[1], equal_nan=True)
