"""Pauses and a slow start: what stands out of a series of step times, at the edges of what counts."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from forensics.analyses.pace.pauses import combs, spikes, warmup


def begun(count: int, height: float, n: int = 100) -> np.ndarray:
    """A level with so many records above it at its beginning."""
    return np.where(np.arange(n) < count, height, 0.0)


@pytest.mark.parametrize(
    ("height", "noise", "count"),
    [(log(1.16), 0.0, 9), (log(1.14), 0.0, 0), (0.21, 0.05, 9), (0.19, 0.05, 0), (log(1.14), 0.01, 0)],
)
def test_a_slow_start_is_fifteen_percent_and_four_times_the_noise_above_the_level(
    height: float, noise: float, count: int
) -> None:
    assert warmup(begun(9, height), noise) == count


@pytest.mark.parametrize(("n", "most"), [(11, 0), (12, 2), (100, 20), (500, 100), (2000, 200)])
def test_a_slow_start_is_a_fifth_of_the_records_and_two_hundred_at_most(n: int, most: int) -> None:
    assert warmup(np.tile([1.0, 0.0], n)[:n], 0.0) == most


def test_a_slow_start_goes_on_while_two_of_four_records_are_slow() -> None:
    assert warmup(begun(5, 1.0) + np.isin(np.arange(100), (6, 8)), 0.0) == 7
    assert warmup(begun(5, 1.0) + np.isin(np.arange(100), (9,)), 0.0) == 5


@pytest.mark.parametrize(("height", "stands_out"), [(log(1.26), True), (log(1.24), False), (-log(1.26), True)])
def test_a_record_stands_out_by_a_quarter_of_a_level_without_noise(height: float, *, stands_out: bool) -> None:
    logs = np.zeros(101)
    logs[50] = height
    found = spikes(logs)
    assert np.flatnonzero(found.far).tolist() == ([50] if stands_out else [])
    assert bool(found.high(logs).any()) is (stands_out and height > 0)


@pytest.mark.parametrize(("times", "stands_out"), [(4.2, True), (3.8, False)])
def test_a_record_stands_out_by_four_deviations_of_a_noisy_level(times: float, *, stands_out: bool) -> None:
    logs = np.random.default_rng(3).normal(0, 0.1, 201)
    calm = spikes(logs)
    logs[100] = calm.base[100] + times * calm.sd
    assert bool(spikes(logs).far[100]) is stands_out


def test_pauses_of_one_period_are_three_or_more_that_chance_does_not_make() -> None:
    assert [(c.period, c.phase, c.teeth) for c in combs(np.array([500, 1500, 2500]), 1, 3000)] == [(1000, 500, 3)]
    assert combs(np.array([500, 1500]), 1, 2000) == ()
    assert combs(np.array([500, 1507, 2500]), 1, 3000) == ()
    assert combs(np.array([50, 150, 250]), 1, 300) == ()


@pytest.mark.parametrize(("missing", "is_one"), [(3, True), (4, False)])
def test_pauses_of_one_period_are_three_quarters_of_those_expected(missing: int, *, is_one: bool) -> None:
    places = np.delete(np.arange(100, 1001, 100), [1, 3, 6, 8][:missing])
    assert (100 in {comb.period for comb in combs(places, 1, 1000)}) is is_one


def test_a_period_is_found_though_another_pause_falls_between_any_two_of_its_own() -> None:
    others = np.arange(100, 1001, 100) + np.array([37, 61, 18, 44, 71, 23, 83, 29, 57, 12])
    places = np.sort(np.concatenate([np.arange(100, 1001, 100), others]))
    assert combs(places, 1, 1012)[0].period == 100


def test_pauses_of_one_period_may_begin_within_the_run_among_others() -> None:
    others, begun = [18, 21, 59, 62], [48, 57, 66, 75, 84, 93, 102, 111, 129]
    (comb,) = combs(np.array(sorted(others + begun)), 2, 129)
    assert (comb.period, comb.phase, comb.teeth, comb.begin) == (9, 3, 9, 48)
    assert comb.holds(np.array([39, 48, 49, 57, 120])).tolist() == [False, True, False, True, True]


def test_the_fewer_pauses_of_a_period_the_fewer_others_may_be_about_them() -> None:
    def known(teeth: int, others: list[int]) -> bool:
        places = {*range(60, 60 + 9 * teeth, 9), *others}
        return bool(combs(np.array(sorted(places)), 1, 60 + 9 * (teeth - 1)))

    frequent = [20, 33, 64, 71, 80, 85, 91, 98, 103, 110, 116, 120]
    assert (known(6, []), known(7, [])) == (False, True)
    assert (known(10, frequent), known(11, frequent)) == (False, True)


@pytest.mark.parametrize(("begin", "begun"), [(23, False), (24, True)])
def test_pauses_begin_where_two_and_a_half_periods_are_free_of_them(begin: int, *, begun: bool) -> None:
    (comb,) = combs(np.arange(begin, 130, 9), 1, 129)
    assert (comb.begin, comb.begun) == (begin, begun)


@pytest.mark.parametrize(("kept", "is_one"), [("1110" * 3, True), ("1111100" * 2, False)])
def test_pauses_that_begin_late_are_three_quarters_of_those_due_from_then_on(kept: str, *, is_one: bool) -> None:
    places = [100 + 20 * at for at, one in enumerate(kept) if one == "1"]
    last = 100 + 20 * (len(kept) - 1)
    assert (20 in {comb.period for comb in combs(np.array(places), 1, last)}) is is_one


def test_places_outside_of_the_steps_are_no_pauses() -> None:
    assert combs(np.array([500, 1500, 2500, 3001]), 1, 3000) == combs(np.array([500, 1500, 2500]), 1, 3000)


def test_random_places_have_a_period_once_in_a_thousand() -> None:
    rng = np.random.default_rng(1)
    drawn = (np.flatnonzero(rng.random(250) < share) for share in (0.03, 0.06, 0.1, 0.14) for _ in range(100))
    assert sum(bool(combs(places, 0, 249)) for places in drawn) <= 1
