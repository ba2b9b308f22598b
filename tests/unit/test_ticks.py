"""Axes: five to eight round values, whatever the range."""

from __future__ import annotations

from math import log10

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forensics.figures._ticks import powers, rounds, times

SECOND = 1_000_000_000
NOON = 1_790_000_000 * SECOND
REAL = st.floats(-1e9, 1e9, allow_subnormal=False)


@given(REAL, st.floats(1e-3, 1e9))
def test_a_range_of_numbers_has_five_to_eight_round_values_that_cover_it_but_for_a_step(
    low: float, span: float
) -> None:
    high = low + span
    assume(high - low > 1e-6 * max(abs(low), abs(high)))
    found = rounds(low, high)
    step = found[1] - found[0]
    assert 5 <= len(found) <= 8
    assert found[0] - step < low + 1e-6 * span
    assert high - 1e-6 * span < found[-1] + step
    assert max(found[-1], high) - min(found[0], low) <= 1.25 * span


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_steps_are_counted_in_whole_numbers(low: int, span: int) -> None:
    found = rounds(low, low + span, whole=True)
    assert all(value == int(value) for value in found)
    assert len(found) <= 8
    assert len(found) >= min(5, span + 1)


@given(st.floats(-9, 9), st.floats(0.1, 30))
def test_a_logarithmic_axis_is_numbered_inside_its_range_only(start: float, decades: float) -> None:
    low, high = 10.0**start, 10.0 ** (start + decades)
    found = powers(low, high)
    assert 3 <= len(found) <= 10
    assert all(low * 0.999 <= value <= high * 1.001 for value in found)


def test_a_loss_under_a_spike_is_numbered_between_the_powers_of_ten_and_a_wide_range_by_them() -> None:
    assert powers(3.0, 95.0) == (3, 5, 7, 10, 20, 30, 50, 70)
    assert [round(log10(v)) for v in powers(1e-3, 1e3)] == [-3, -2, -1, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("span_s", "first"),
    [(0.004, "20.000 s"), (3, "14:13:20.0"), (100, "14:13:30"), (4000, "14:20"), (500_000, "2026-09-22")],
)
def test_times_have_no_more_digits_than_their_steps_need(span_s: float, first: str) -> None:
    said = [word for _, word in times(NOON, NOON + round(span_s * SECOND))]
    assert said[0] == first
    assert 3 <= len(said) <= 8
    assert len(set(said)) == len(said)


def test_a_single_instant_and_one_beyond_the_calendar_have_no_ticks() -> None:
    assert times(NOON, NOON) == ()
    assert times(2**63 - 2, 2**63 - 1) == ()
