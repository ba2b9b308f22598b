"""A part of the store leaves out what needs no rows, and gives it back."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from forensics.store import parts
from forensics.store.schema import TABLES, conform

few = st.sampled_from
rows = st.lists(
    st.fixed_dictionaries(
        {
            "source": st.just("a/b.log"),
            "rank": few([None, 3]),
            "attempt": few([0, 1]),
            "step": few([None, 1, 2**62]),
            "gstep": few([None, 1]),
            "name": few(["loss", "lr", None]),
            "raw_name": few(["loss", "lr", None]),
            "value": few([None, 0.5, float("nan"), float("inf")]),
        }
    ),
    min_size=1,
    max_size=5,
)


def through(table: str, frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """What comes back of a part, and the columns that its file holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.parquet"
        parts.write(table, frame, path)
        return parts.scan(table, path).collect(), pl.read_parquet(path).columns


@given(rows)
def test_every_row_comes_back_as_it_was(found: list[dict[str, object]]) -> None:
    schema = {name: TABLES["metrics"][name] for name in found[0]}
    frame = conform("metrics", pl.DataFrame(found, schema=schema))

    again, _ = through("metrics", frame)

    assert_frame_equal(again, frame)


@given(rows, few(sorted(TABLES)))
def test_an_empty_row_of_any_table_comes_back(found: list[dict[str, object]], table: str) -> None:
    frame = pl.DataFrame({name: [None] * len(found) for name in TABLES[table]}, schema=dict(TABLES[table]))

    again, _ = through(table, frame)

    assert_frame_equal(again, frame)


def test_what_all_rows_share_and_what_is_said_twice_is_not_in_the_file() -> None:
    said = {"source": ["x"] * 3, "seq": [1, 2, 3], "step": [1, 2, 4], "gstep": [1, 2, 4], "value": [1.0, 1.0, 1.0]}
    names = ["loss", "lr", "loss"]
    frame = conform("metrics", pl.DataFrame(said | {"name": names, "raw_name": names}))

    again, held = through("metrics", frame)

    assert held == ["seq", "step", "name", "value"]
    assert_frame_equal(again, frame)


def test_a_filter_by_what_was_left_out_finds_its_rows() -> None:
    frame = conform(
        "metrics", pl.DataFrame({"source": ["x", "x"], "rank": [7, 7], "step": [1, 2], "value": [0.5, 0.25]})
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.parquet"
        parts.write("metrics", frame, path)

        assert parts.scan("metrics", path).filter(pl.col("rank") == 7).collect().height == 2
        assert parts.scan("metrics", path).filter(pl.col("rank") == 8).collect().height == 0
        assert parts.scan("metrics", path).select(pl.len()).collect().item() == 2
        assert parts.scan("metrics", path).select("source").collect().height == 2
