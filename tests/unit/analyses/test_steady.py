"""The unit in which times were printed, as far as the times themselves tell it."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.analyses.pace.steady import resolution


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ((0.512, 1.024), 0.001),
        ((0.5, 1.0), 0.1),
        ((1.0, 2.0), 1.0),
        ((0.5, 1.0, 1.5), 0.1),
        ((0.5, 1.0, 1.5, 2.0), 0.5),
        ((0.5, 0.77), 0.0),
        ((0.5,), 0.0),
    ],
)
def test_two_levels_are_no_printing_unit(values: tuple[float, ...], unit: float) -> None:
    seconds = np.repeat(np.array(values), 9)
    assert resolution(seconds) * np.median(seconds) == pytest.approx(unit)


def test_a_unit_that_is_known_is_no_finer() -> None:
    assert resolution(np.array([0.5, 1.0, 0.5]), 0.25) == pytest.approx(0.5)
