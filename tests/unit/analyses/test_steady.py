"""The unit in which times were printed, as far as the times themselves tell it."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.analyses.pace import pauses
from forensics.analyses.pace.pauses import floor_of, over_floor
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


@pytest.mark.parametrize("piece", [1, 5, 1_000])
def test_what_stands_above_its_floor_is_found_piece_by_piece(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = np.random.default_rng(2).normal(size=40)
    beyond = logs - floor_of(logs)
    monkeypatch.setattr(pauses, "_PIECE", piece)
    assert over_floor(logs, 0.5).tolist() == np.where(beyond > 0.5, beyond, 0.0).tolist()
