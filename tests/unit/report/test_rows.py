"""Rows for people fit and direct no terminal; rows for programs keep NaN and null apart."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.report.rows import Page, render

FORMATS = ("text", "csv", "json", "jsonl")
HOSTILE = ("\x1b[31mred", "\u202eover", "two\nlines", "=cmd()", "a\tb", "\x9b1m", "\u2066")


def said(rows: pl.DataFrame, form: str = "text", total: int | None = None) -> list[str]:
    return "\n".join(render(Page(rows, rows.height if total is None else total), form)).split("\n")


def test_nan_is_nan_and_null_is_empty() -> None:
    rows = pl.DataFrame({"step": [1, 2, 3, None], "value": [math.nan, None, -math.inf, 0.1]})
    assert said(rows) == ["step  value", "   1    NaN", "   2", "   3   -inf", "        0.1"]
    assert said(rows, "csv") == ["step,value", "1,NaN", "2,", "3,-inf", ",0.1"]
    assert [json.loads(line)["value"] for line in said(rows, "jsonl")] == ["NaN", None, "-Infinity", 0.1]
    document = json.loads("\n".join(said(rows, "json")))
    assert document["schema"] == "forensics.query/1"
    assert document["rows"][0] == {"step": 1, "value": "NaN"}
    assert document["columns"] == [{"name": "step", "type": "Int64"}, {"name": "value", "type": "Float64"}]


@pytest.mark.parametrize("form", ["text", "csv"])
def test_neither_a_cell_nor_a_column_directs_a_terminal(form: str) -> None:
    rows = pl.DataFrame({"name": HOSTILE, **{name: [1] * len(HOSTILE) for name in HOSTILE}})
    shown = "\n".join(said(rows, form))
    assert not set(shown) & set("\x1b\x9b\u202e\u2066\t\r")
    assert r"two\nlines" in shown


def test_no_cell_of_csv_is_a_formula() -> None:
    lines = "\n".join(said(pl.DataFrame({"=a()": ["+1+1", "-2.5", "@x"], "v": [-1.0, 2.0, 3.0]}), "csv"))
    assert list(csv.reader(io.StringIO(lines))) == [["'=a()", "v"], ["'+1+1", "-1.0"], ["-2.5", "2.0"], ["'@x", "3.0"]]


def test_long_text_is_cut_to_the_width_and_a_place_never() -> None:
    place = "a/very/deep/folder/of/logs/train.log:123456"
    rows = pl.DataFrame({"source": ["a/very/deep/folder/train.log"], "line": [7], "text": ["word " * 40]})
    assert all(len(line) <= 80 for line in said(rows))
    assert "a/very/deep/folder/train.log     7  word" in said(rows)[1]
    both = pl.DataFrame({"where": [place], "text": ["word " * 40]})
    assert place in said(both)[1]
    assert len(said(both)[1]) <= 80


def test_what_does_not_fit_stands_one_under_the_other() -> None:
    rows = pl.DataFrame({f"column_{n}": [n * 1_000_000_007] for n in range(12)})
    shown = said(rows)
    assert shown[0] == "row 1"
    assert shown[-1] == "column_11   11000000077"


def test_what_is_not_shown_is_counted() -> None:
    rows = pl.DataFrame({"n": [1, 2]})
    assert said(rows, total=5)[-1] == "... and 3 more rows: --limit 0 shows all"
    assert said(rows.head(0))[-1] == "(no rows)"


def test_values_that_json_has_no_form_for_are_text() -> None:
    rows = pl.DataFrame(
        {"t": [datetime(2026, 1, 2, tzinfo=UTC)], "d": [Decimal("1.50")], "l": [[1.5, None]], "s": [{"a": 1}]}
    )
    assert json.loads(said(rows, "jsonl")[0]) == {
        "t": "2026-01-02 00:00:00+00:00",
        "d": "1.50",
        "l": [1.5, None],
        "s": {"a": 1},
    }


@given(
    st.lists(st.tuples(st.text(max_size=30), st.floats(), st.text(max_size=200)), max_size=5), st.sampled_from(FORMATS)
)
def test_any_rows_are_rendered(rows: list[tuple[str, float, str]], form: str) -> None:
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.Float64, "c": pl.String}, orient="row")
    shown = said(frame, form)
    if form == "text":
        assert all(len(line) <= 80 or line.lstrip().count(" ") < 2 for line in shown)
        assert all(line.isprintable() or "\xa0" in line for line in shown if line.isascii())
    if form == "jsonl":
        assert len([json.loads(line) for line in shown if line]) == len(rows)
