"""Excerpts of a log: short, cut off at both ends, without a first step and without an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import said, shape

FALL = (
    "[2026-01-02 03:04:0{i},018] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step."
)
FALL += " Attempted loss scale: {of:g}, reducing to {to:g}"


def falls(top: float, count: int) -> list[str]:
    return [FALL.format(i=i, of=top / 2**i, to=top / 2 ** (i + 1)) for i in range(count)]


def test_a_loss_scale_that_falls_five_times_in_a_row_to_the_end_collapsed(tmp_path: Path) -> None:
    verdict = said(tmp_path, falls(64, 5))
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.NAN, "loss_scale_collapse")


@pytest.mark.parametrize(
    ("top", "count", "after"),
    [(65536, 5, 0), (64, 4, 0), (64, 5, 3)],
    ids=["the search for a scale at the start", "four falls", "losses of later updates"],
)
def test_a_loss_scale_that_is_still_searched_for_did_not(tmp_path: Path, top: float, count: int, after: int) -> None:
    later = [f"{{'loss': 2.{i}, 'learning_rate': 1e-05, 'epoch': 0.{i}}}" for i in range(1, after + 1)]
    assert said(tmp_path, [*falls(top, count), *later]).cause != "loss_scale_collapse"
