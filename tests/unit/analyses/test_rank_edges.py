"""How many steps it takes to tell one rank from the others, in its loss and in its time."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.analyses.learning.ranks import Disagree, Together, _left
from forensics.analyses.pace.ranks import _begun, _Times


@pytest.mark.parametrize(("steps", "told"), [(19, False), (20, True)])
def test_a_loss_that_leaves_the_others_is_told_from_twice_the_fewest_steps_on(steps: int, *, told: bool) -> None:
    values = 2 + np.random.default_rng(1).normal(0, 0.005, (steps, 4))
    values[steps // 2 :, 2] *= 2
    found = _left(Together(np.arange(steps, dtype=float), values, (0, 1, 2, 3), ()), Disagree())
    assert (found is not None) is told
    assert found is None or (found.odd, found.onset) == (2, 10)


@pytest.mark.parametrize(("slow", "begins"), [(7, 32), (8, 32), (9, 31)])
def test_a_rank_is_slow_for_eight_steps_at_least(slow: int, begins: int) -> None:
    values = 1 + np.random.default_rng(1).normal(0, 0.002, (40, 4))
    values[40 - slow :, 1] = 1.5
    assert _begun(_Times(values, list(range(40)), [0, 1, 2, 3], None), 1, waiting=False) == begins
