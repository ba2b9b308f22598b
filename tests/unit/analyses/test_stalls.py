"""When pauses began or came more often, and where a share changes most: the numbers that decide, at their edges."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from forensics.analyses.pace.edges import sharpest_edge
from forensics.analyses.pace.stalls import _more_often, stalls_of, turned_slow
from forensics.analyses.pace.steady import steady


def index_of_more(places: Iterable[int]) -> int | None:
    excess = np.zeros(1000)
    excess[list(places)] = 3.0
    found = _more_often(excess, excess > 0, 0.05)
    return None if found is None else found.index


@pytest.mark.parametrize(("late", "index"), [(7, 980), (6, None)])
def test_eight_pauses_are_the_fewest_whose_rate_can_change(late: int, index: int | None) -> None:
    assert index_of_more([100, *(999 - 2 * k for k in range(late))]) == index


def test_pauses_that_come_twice_as_often_change_their_rate_and_rarer_ones_do_not() -> None:
    assert index_of_more([*range(0, 500, 10), *range(500, 1000, 4)]) == 500
    assert index_of_more([*range(0, 500, 4), *range(500, 1000, 10)]) is None


@pytest.mark.parametrize(("first", "index"), [(31, 31), (30, None)])
def test_four_grave_pauses_begin_where_chance_leaves_so_long_a_begin_free_once_in_five_hundred(
    first: int, index: int | None
) -> None:
    seconds = 1 + 0.01 * np.sin(np.arange(40) * 1.7)
    seconds[[first, first + 2, first + 5, first + 8]] = 5.0
    series = steady(seconds, np.arange(40))
    assert series is not None
    found = stalls_of(series)
    assert (None if found is None else found.index) == index


@pytest.mark.parametrize(("first", "found"), [(49, (48, 9)), (22, None)])
def test_regular_pauses_begin_among_others_that_came_before(first: int, found: tuple[int, int] | None) -> None:
    seconds = 1 + 0.02 * np.sin(np.arange(130) * 1.7)
    seconds[[14, 17, 20, 58, 61, *range(first - 1, 130, 9)]] = 6.0
    series = steady(seconds, np.arange(1, 131))
    assert series is not None
    stalls = stalls_of(series)
    assert (None if stalls is None else (stalls.index, stalls.period)) == found


def index_of_slow(before: int, slow: Iterable[int], after: int, seconds: float = 2.7) -> int | None:
    """Where a series turned slow that has `before` fast records, then `after` ones of which these are slow."""
    took = 1 + 0.02 * np.sin(np.arange(before + after) * 1.7)
    took[[before + at for at in slow]] = seconds
    series = steady(took, 5 * np.arange(before + after))
    assert series is not None
    found = turned_slow(series)
    return None if found is None else found.index


_EVERY_SEVENTH_STEP = [0, 1, 2, 4, 5, 7, 8, 9]  # of records of five steps


def test_records_that_hold_a_pause_in_two_of_three_cases_turn_a_short_series_slow() -> None:
    assert index_of_slow(10, _EVERY_SEVENTH_STEP, 11) == 10


@pytest.mark.parametrize(
    ("before", "slow", "after", "seconds"),
    [
        (10, _EVERY_SEVENTH_STEP[:7], 11, 2.7),  # fewer than eight
        (7, _EVERY_SEVENTH_STEP, 11, 2.7),
        (10, _EVERY_SEVENTH_STEP, 11, 1.45),  # a host with other load
        (50, _EVERY_SEVENTH_STEP, 11, 2.7),  # a long series, whose level and pauses have tests of their own
        (10, [0, 4, 8, 13, 17, 22, 26, 31], 35, 2.7),  # an evaluation now and then: too little time
    ],
)
def test_too_few_or_too_short_or_too_rare_slow_records_turn_no_series_slow(
    before: int, slow: list[int], after: int, seconds: float
) -> None:
    assert index_of_slow(before, slow, after, seconds) is None


def test_slow_records_that_were_as_frequent_before_turn_no_series_slow() -> None:
    assert index_of_slow(10, [-9, -7, -6, -4, -3, -1, *_EVERY_SEVENTH_STEP], 11) is None


def test_a_rare_value_places_an_edge_that_quantiles_pass_over() -> None:
    values = np.array([1.0] * 4 + [2.0, 3.0, 3.0] * 16 + [2.0, 2.0, 3.0] * 16)
    assert sharpest_edge(values) == 4


@pytest.mark.parametrize("shortest", [2, 8])
def test_an_edge_needs_the_shortest_level_on_both_sides(shortest: int) -> None:
    values = np.repeat([1.0, 2.0], [shortest, shortest + 1])
    assert sharpest_edge(values, shortest) == shortest
    assert sharpest_edge(values[:-2], shortest) is None


def test_two_records_are_a_level_unless_more_are_asked_for() -> None:
    assert sharpest_edge(np.repeat([1.0, 2.0], [20, 2])) == 20
