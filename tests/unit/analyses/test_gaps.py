"""A gap of hours in a run that went on: what makes one, and what explains it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest

from forensics.analyses.pace.gaps import longest_gap
from forensics.pipeline import ingest_bytes


def log(
    gaps: Mapping[int, float], *, every_s: float = 300.0, says: Mapping[int, str] | None = None, ahead: str = ""
) -> bytes:
    at, lines = datetime(2031, 5, 6), []  # noqa: DTZ001 - a local time, as logs print them
    for epoch in range(30):
        at += timedelta(seconds=every_s + gaps.get(epoch, 0.0))
        lines += [*filter(None, [(says or {}).get(epoch)]), f"{at} epoch {epoch} loss {2 / (epoch + 1):.4f}{ahead}"]
    return "\n".join([*lines, "training finished"]).encode()


def gap_at(text: bytes) -> int | None:
    found = longest_gap(ingest_bytes("train.log", text))
    return None if found is None else int(found.clock.row(found.index)["at"])


@pytest.mark.parametrize(("gap_s", "at"), [(5400.0, 12), (5399.0, None)])
def test_a_gap_is_longer_than_the_hour_of_summer(gap_s: float, at: int | None) -> None:
    assert gap_at(log({12: gap_s})) == at


@pytest.mark.parametrize(("every_s", "at"), [(800.0, 12), (801.0, None)])
def test_a_gap_is_ten_times_the_usual_one(every_s: float, at: int | None) -> None:
    assert gap_at(log({12: 7200.0}, every_s=every_s)) == at


@pytest.mark.parametrize(("epochs", "at"), [((5, 12), 5), ((5, 12, 20), None)])
def test_three_gaps_are_part_of_the_work(epochs: tuple[int, ...], at: int | None) -> None:
    assert gap_at(log(dict.fromkeys(epochs, 9000.0))) == at


@pytest.mark.parametrize(
    ("said", "at"),
    [("Resuming from checkpoint of epoch 11", None), ("received SIGTERM, requeue", None), ("saved the model", 12)],
)
def test_a_restart_or_a_stop_explains_a_gap(said: str, at: int | None) -> None:
    assert gap_at(log({12: 9000.0}, says={12: said})) == at


def test_an_evaluation_that_is_seldom_may_take_so_long() -> None:
    says = {epoch: f"val_loss {1 / epoch:.3f} at epoch {epoch - 1}" for epoch in (6, 12, 18, 24)}
    assert gap_at(log({12: 9000.0}, says=says)) is None
    assert gap_at(log({12: 9000.0}, ahead=" val_loss 0.5")) == 12
