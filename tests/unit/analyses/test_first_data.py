"""Losses after a restart whose ups and downs are, or are not, those of the first records."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.analyses.resume.first_data import Alike, first_data_again
from forensics.stats.spread import Floats

ANY = Alike(least=0.0, errors=0.0, rival=10.0)
BATCHES, OTHERS = np.random.default_rng(7).normal(size=(2, 400))


def old(records: int) -> Floats:
    return np.asarray(3.0 * np.exp(0.03 * BATCHES[:records]))


def new(records: int, share: float) -> Floats:
    """A loss of the same batches by a share, and of others by the rest."""
    return np.asarray(2.0 * np.exp(0.03 * (share * BATCHES[:records] + (1 - share) * OTHERS[:records])))


def share_for(likeness: float, records: int) -> float:
    """The share at which the ups and downs correlate so much."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if first_data_again(old(400), new(records, middle), ANY) < likeness:
            low = middle
        else:
            high = middle
    return high


@pytest.mark.parametrize(("records", "bound"), [(200, 0.5), (40, 4 / 40**0.5)])
def test_the_likeness_must_be_a_half_and_four_errors_of_none(records: int, bound: float) -> None:
    assert first_data_again(old(400), new(records, share_for(bound + 0.005, records)), Alike()) >= bound
    assert first_data_again(old(400), new(records, share_for(bound - 0.005, records)), Alike()) == 0


@pytest.mark.parametrize(("before", "after", "told"), [(50, 30, True), (49, 30, False), (50, 29, False)])
def test_thirty_records_are_compared_at_twenty_other_places_or_nothing_is_said(
    before: int, after: int, *, told: bool
) -> None:
    assert (first_data_again(old(before), new(after, 1.0), Alike()) > 0) is told


@pytest.mark.parametrize(("rival", "told"), [(0.68, True), (0.84, False)])
def test_no_other_place_may_be_as_alike_as_three_quarters_of_the_first(rival: float, *, told: bool) -> None:
    past = old(400).copy()
    mixed = rival * np.log(past[:100] / 3.0) + (1 - rival**2) ** 0.5 * 0.03 * OTHERS[100:200]
    past[200:300] = 3.0 * np.exp(mixed)
    again = first_data_again(past, new(100, 1.0), Alike())
    assert (again > 0) is told


def test_a_pattern_that_comes_again_with_a_period_is_no_first_data() -> None:
    beat = 0.2 * (np.arange(400) % 8 == 0)
    assert first_data_again(old(400) * np.exp(beat), new(100, 0.0) * np.exp(beat[:100]), Alike()) == 0
