"""A step that takes longer because fewer devices share it is no slowdown: told by the lines about the change."""

from __future__ import annotations

import json
from typing import cast

import numpy as np
import polars as pl
import pytest

from forensics.analyses.pace.account import fewer_devices
from forensics.analyses.pace.change import Change
from forensics.analyses.pace.clocks import Clock
from forensics.store.run import Run, run_of


class Lines:
    """Records of a clock on lines 10, 20, 30…; it changes at the tenth, on line 110."""

    source, unit = "a.log", "step"

    def row(self, record: int) -> dict[str, int]:
        return {"line": 10 * (record + 1)}


def said(*told: tuple[int, int], source: str = "a.log") -> Run:
    """Lines that tell how many devices there are."""
    events = [(source, line, "devices-said", json.dumps({"devices": count})) for line, count in told]
    return run_of("made", {"events": pl.DataFrame(events, schema=["source", "line", "code", "attrs"], orient="row")})


def shared(run: Run, ratio: float = 2.0, first: int = 10) -> bool:
    change = Change("lasting", "jump", first, 20, 0.5, ratio, 9.0, confirmed=True)
    return fewer_devices(run, cast("Clock", Lines()), np.arange(20), change)


@pytest.mark.parametrize(("line", "is_near"), [(79, False), (80, True), (110, True), (140, True), (141, False)])
def test_the_line_of_fewer_devices_stands_within_three_records_of_the_change(line: int, is_near: bool) -> None:
    assert shared(said((1, 8), (line, 4))) is is_near


@pytest.mark.parametrize(("ratio", "is_share"), [(2.0, True), (2.19, True), (2.21, False), (1.0, True)])
def test_each_device_is_about_as_fast_as_it_was(ratio: float, is_share: bool) -> None:
    assert shared(said((1, 8), (110, 4)), ratio) is is_share


def test_as_many_devices_or_more_share_nothing() -> None:
    assert not shared(said((1, 4), (110, 4)), 1.05)
    assert not shared(said((1, 4), (110, 8)), 0.5)


def test_the_last_line_before_the_change_and_the_last_one_about_it_count() -> None:
    assert shared(said((1, 4), (5, 8), (100, 8), (110, 4)))
    assert not shared(said((1, 8), (5, 4), (110, 4)))
    assert not shared(said((1, 8), (100, 4), (110, 8)))


def test_a_line_of_another_file_or_on_one_side_only_tells_nothing() -> None:
    assert not shared(said((1, 8), (110, 4), source="b.log"))
    assert not shared(said((110, 4)))
    assert not shared(said((1, 8)))
    assert not shared(said())


def test_a_change_near_an_end_is_looked_at_up_to_that_end() -> None:
    assert shared(said((1, 8), (200, 4)), first=19)
    assert not shared(said((1, 8), (201, 4)), first=19)
    assert shared(said((9, 8), (10, 4)), first=1)
