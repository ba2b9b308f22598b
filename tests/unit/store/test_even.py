"""Numbers that rise about evenly are held by a line, and each comes back as it was."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.store.even import Even, evened

_NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200)


def made(numbers: object) -> Even:
    even = evened(np.array(numbers))
    assert even is not None
    return even


@given(st.lists(_NUMBERS, max_size=40), st.integers(0, 2**40), st.integers(-1000, 1000), st.sampled_from([1, 7, 10**9]))
def test_every_number_comes_back(noise: list[int], start: int, rise: int, unit: int) -> None:
    line = [unit * (start + rise * i + n) for i, n in enumerate(noise)]
    numbers = np.array([max(min(number, 2**63 - 1), -(2**63)) for number in line], np.int64)
    even = evened(numbers)
    if even is None:
        return
    places = np.arange(len(numbers))
    assert even.whole(np.int64).tolist() == even.take(places).tolist() == numbers.tolist()
    assert [even.one(i) for i in range(len(even))] == numbers.tolist()
    by_query = pl.DataFrame({"at": places.astype(np.uint32)}).select(even.expression("at")).to_series()
    assert by_query.to_list() == numbers.tolist()


@pytest.mark.parametrize("width", [1, 2, 3, 5, 7, 10, 20, 49])
def test_the_record_of_a_row_takes_no_byte_where_records_are_of_one_width(width: int) -> None:
    records = np.repeat(np.arange(3_000, dtype=np.uint32), width)
    assert made(records).rest is None
    assert made(records).whole(np.int64).tolist() == records.tolist()
    assert made(np.flatnonzero(np.arange(len(records)) % width == width - 1)).rest is None


def test_what_is_near_a_line_takes_a_byte_and_what_is_far_from_it_stays_as_it_is() -> None:
    near = np.arange(2_000) * 117 + np.arange(2_000) % 7
    rest = made(near).rest
    assert rest is not None
    assert rest.dtype == np.uint8
    assert evened(np.random.default_rng(3).integers(-(2**31), 2**31, 2_000).astype(np.int32)) is None


def test_times_in_whole_seconds_are_held_as_seconds() -> None:
    seconds = np.arange(2_000) // 7 + (np.arange(2_000) > 900) * 200
    held = made(seconds * 10**9)
    assert held.unit == 10**9
    assert held.rest is not None
    assert held.rest.dtype == np.uint8
    assert held.whole(np.int64).tolist() == (seconds * 10**9).tolist()
    odd = seconds * 10**9
    odd[3] += 1  # every second number is looked at before all are
    assert evened(odd) is None


def test_a_restart_in_the_middle_keeps_every_step() -> None:
    steps = np.concatenate([np.arange(5_000), np.arange(2_500, 9_000)])
    assert made(steps).whole(np.int64).tolist() == steps.tolist()


def test_numbers_too_large_for_a_difference_stay_as_they_are() -> None:
    assert evened(np.array([-(2**63), 2**63 - 1, 0])) is None
    assert evened(np.array([5])) is None
