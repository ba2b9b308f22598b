"""An example's table means the same by rows and by columns."""

from __future__ import annotations

import math

import pytest

from tests.meta._example_tables import cells_of, frame_of

BY_ROWS = """
    0,10,loss,2.5
    0,10,lr,0.1
    1,20,loss,2
    2,30,loss,1.5
    2,30,lr,0.1
"""
BY_COLUMNS = """
    step: 10..30/10
    loss: 2.5
       2 1.5
    lr: 0.1 - 0.1
"""


def test_columns_give_the_rows_that_they_stand_for() -> None:
    by_rows = frame_of("metrics seq,step,name,value", BY_ROWS)[1]
    by_columns = frame_of("metrics", BY_COLUMNS)[1]
    assert by_columns.select(by_rows.columns).equals(by_rows)


def test_a_lone_value_holds_for_every_record() -> None:
    frame = frame_of("metrics", "rank: 3\nstep: 1..4\nloss: 1\n")[1]
    assert (frame["rank"].to_list(), frame["value"].to_list()) == ([3] * 4, [1.0] * 4)


def test_a_table_without_metrics_has_a_row_for_each_record() -> None:
    frame = frame_of("checkpoints", "step: 1..3\n")[1]
    assert frame["step"].to_list() == [1, 2, 3]


def test_nan_is_kept() -> None:
    assert math.isnan(frame_of("metrics", "step: 1 2\nloss: 1 nan\n")[1]["value"][1])


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("1..3", ["1", "2", "3"]),
        ("0.3..0.1/-0.1", ["0.3", "0.2", "0.1"]),
        ("-1..1", ["-1", "0", "1"]),
        ("nan*2 5", ["nan", "nan", "5"]),
        ("1e-5*2", ["1e-5", "1e-5"]),
        ("(1 2*2)*2 3", ["1", "2", "2", "1", "2", "2", "3"]),
        ("f(1)*2", ["f(1)", "f(1)"]),
    ],
)
def test_a_progression_includes_both_ends(text: str, cells: list[str]) -> None:
    assert list(cells_of(text)) == cells


@pytest.mark.parametrize("text", ["1..2/0.3", "step: 1..3\nloss: 1 2"])
def test_what_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        frame_of("metrics", text) if ":" in text else list(cells_of(text))
