"""The measures of noisy series: what they find, and what they leave alone."""

from __future__ import annotations

from math import sqrt

import numpy as np
import polars as pl
import pytest

from forensics.stats.changes import best_cut, best_split, change_points, cumulated, modes_of
from forensics.stats.correlation import correlation, long_run, mean_of, noise_about
from forensics.stats.running import centred_median, edge_median
from forensics.stats.spread import bending, jitter, relative_spread, scatter, spread, trimmed, winsorised
from forensics.stats.trend import line_of, trend_of

RANDOM = np.random.default_rng(7)
NOISE = RANDOM.normal(0.0, 1.0, 4000)
DRIFTING = np.zeros(4000)
for place in range(1, 4000):
    DRIFTING[place] = 0.8 * DRIFTING[place - 1] + NOISE[place]


def test_each_spread_is_the_deviation_of_normal_noise() -> None:
    for measure in (scatter, spread, jitter, bending):
        assert measure(NOISE) == pytest.approx(1.0, rel=0.05)


def test_a_spread_is_about_the_median_and_a_scatter_about_nothing() -> None:
    assert spread(NOISE + 50) == pytest.approx(1.0, rel=0.05)
    assert scatter(NOISE + 50) > 50


def test_a_shift_does_not_count_as_jitter_nor_a_slope_as_bending() -> None:
    shifted = NOISE + np.where(np.arange(4000) < 2000, 0.0, 9.0)
    sloped = NOISE + 5 * np.arange(4000)
    assert spread(shifted) > 4
    assert jitter(shifted) == pytest.approx(1.0, rel=0.05)
    assert jitter(sloped) > 3
    assert bending(sloped) == pytest.approx(1.0, rel=0.05)


def test_too_few_values_have_no_spread() -> None:
    assert (scatter(NOISE[:0]), spread(NOISE[:0]), jitter(NOISE[:2])) == (0.0, 0.0, 0.0)


def test_a_relative_spread_needs_a_positive_level() -> None:
    assert relative_spread(pl.Series(NOISE + 10)) == pytest.approx(0.1, rel=0.1)
    assert relative_spread(pl.Series(NOISE - 10)) == 0.0


def test_strays_are_pulled_in_and_many_of_them_only_trimmed() -> None:
    one = np.append(NOISE[:99], 1e6)
    many = np.append(NOISE[:80], np.full(20, 1e6))
    assert winsorised(one).max() < 5
    assert winsorised(many).max() == trimmed(many).max() == 1e6


def test_a_centred_median_mirrors_its_ends_and_an_edge_median_repeats_them() -> None:
    rising = np.array([5.0, 1.0, 9.0, 2.0, 8.0])
    assert centred_median(rising, 3).tolist() == [1.0, 5.0, 2.0, 8.0, 2.0]
    assert edge_median(rising, 3).tolist() == [5.0, 5.0, 2.0, 8.0, 8.0]
    assert centred_median(rising[:1], 9).tolist() == [5.0]


def test_a_correlation_is_that_of_neighbours_and_never_negative() -> None:
    assert correlation(DRIFTING) == pytest.approx(0.8, abs=0.03)
    assert correlation(np.tile([1.0, -1.0], 50)) == 0.0
    assert correlation(np.zeros(50)) == 0.0


def test_the_error_of_a_level_grows_with_the_correlation() -> None:
    alone, drifting = (noise_about(values, np.zeros(4000)) for values in (NOISE, DRIFTING))
    assert alone.of_level(100) == pytest.approx(1.2533 / 10, rel=0.1)
    assert drifting.sd_long == pytest.approx(5.0, rel=0.2)


def test_the_mean_of_drifting_noise_is_worth_few_values() -> None:
    assert mean_of(NOISE).effective > 2000
    assert mean_of(DRIFTING).effective < 700
    assert mean_of(DRIFTING).se == pytest.approx(5.0 / sqrt(4000), rel=0.35)
    assert long_run(DRIFTING).sd == pytest.approx(5.0, rel=0.35)


def test_a_split_is_the_one_that_a_search_of_all_finds() -> None:
    values = NOISE[:40] + np.where(np.arange(40) < 13, 0.0, 3.0)
    errors = {k: values[:k].var() * k + values[k:].var() * (40 - k) for k in range(2, 39)}
    gain, cut = best_split(cumulated(values), 0, 40, 2)
    assert cut == min(errors, key=lambda k: errors[k])
    assert gain == pytest.approx(values.var() * 40 - errors[cut])
    assert best_cut(values, 2) == (cut, pytest.approx(sqrt(gain)))


def test_no_part_of_a_split_is_shorter_than_asked() -> None:
    values = np.array([9.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert best_cut(values, 1) == (1, pytest.approx(sqrt(67.5)))
    assert best_split(cumulated(values), 0, 6, 3)[1] == 3
    assert best_split(cumulated(values), 0, 3, 2) == (0.0, 0)
    assert best_cut(values[:3], 2) is None


def test_changes_of_a_level_are_found_and_noise_has_none() -> None:
    stairs = NOISE[:300] + np.repeat([0.0, 8.0, 3.0], 100)
    assert change_points(stairs, 1.0) == [100, 200]
    assert change_points(NOISE[:300], 1.0) == []


def test_a_robust_line_passes_strays_by() -> None:
    t = np.linspace(0, 1, 100)
    y = 2 + 3 * t + 0.01 * NOISE[:100]
    y[::10] = 1e3
    assert line_of(t, y).rise == pytest.approx(3.0, rel=0.05)
    assert line_of(np.zeros(5), y[:5]).rise == 0.0


def test_a_trend_of_noise_is_not_proven() -> None:
    rising = trend_of(NOISE[:400] + np.linspace(0, 8, 400))
    flat = trend_of(NOISE[:400])
    assert rising is not None
    assert flat is not None
    assert rising.z > 5
    assert abs(flat.z) < 3
    assert trend_of(NOISE[:19]) is None


def test_two_modes_part_between_them_and_one_has_none() -> None:
    two = np.concatenate([0.05 * NOISE[:60], 1 + 0.05 * NOISE[60:100]])
    found = modes_of(two)
    assert found is not None
    assert 0.2 < found.cut < 0.8
    assert found.slow == pytest.approx(0.4)
    assert modes_of(NOISE[:100]) is None
    assert modes_of(two[30:69]) is None
