"""Averages since the start are told by what went into them, however many records are looked at together."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.analyses.pace import average

STEPS = np.arange(1, 201)
TIMES = 1 + np.random.default_rng(3).random(200)


@pytest.mark.parametrize("piece", [1, 7, 180, 1_000])
def test_of_a_hundred_times_behind_the_first_tenth_ninety_eight_are_above_zero(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(average, "_PIECE", piece)
    for negative, is_average in ((3, True), (4, False)):  # of 180
        times = TIMES.copy()
        times[[0, 19, *range(40, 40 + negative)]] *= -1  # those of the first tenth count for nothing
        assert average.is_of_times(np.cumsum(times) / STEPS, STEPS) is is_average


def test_no_record_is_no_average() -> None:
    assert not average.is_of_times(np.zeros(0), np.zeros(0, np.int64))
