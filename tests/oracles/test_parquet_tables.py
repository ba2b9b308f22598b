"""Parquet tables against pyarrow, or polars where that is not installed: every cell of every column, with its step."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics import pipeline
from forensics.errors import InputError, NotMine
from forensics.formats.wandb.exports import history_parquet as wandb_history_parquet
from forensics.io.parquet_pages import shape_of

from .tables import BATCH_ROWS, NUMBER, Bounded, classed, read, rows, shown

pytestmark = pytest.mark.usefixtures("only_owned_columns")
CELL = NUMBER | st.none()
TABLE = st.lists(
    st.tuples(st.integers(0, 1 << 62), CELL, CELL, st.integers(-9, 9) | st.none()), min_size=1, max_size=40
)
NAMES = ("m0", "m1", "m2")


def by_arrow(table: dict[str, Sequence[Any]], **options: Any) -> bytes:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    types = {"step": pa.int64(), "_step": pa.int64(), "m0": pa.float64(), "m1": pa.float64(), "m2": pa.int32()}
    columns = {name: pa.array(cells, type=types.get(name, pa.string())) for name, cells in table.items()}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, **options)
    return buffer.getvalue()


def cells_by_arrow(data: bytes) -> dict[str, list[Any]]:
    return pytest.importorskip("pyarrow.parquet").read_table(io.BytesIO(data)).to_pydict()


def expected(peer: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    return [
        (step, name, shown(float(cell)), classed(float(cell)))
        for name in NAMES
        for step, cell in zip(peer["step"], peer[name], strict=True)
        if cell is not None
    ]


def columns_of(table: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[place] for row in table] for place, name in enumerate(("step", *NAMES))}


@given(
    table=TABLE,
    group_rows=st.sampled_from([1, 7, 1000]),
    page_bytes=st.sampled_from([1, 64, 1 << 20]),
    dictionary=st.booleans(),
    version=st.sampled_from(["1.0", "2.0"]),
    compression=st.sampled_from(["none", "snappy", "zstd", "gzip"]),
    batch_rows=BATCH_ROWS,
)
def test_every_cell_is_the_one_that_pyarrow_gives(
    *, table: list[tuple[Any, ...]], batch_rows: int, **made: Any
) -> None:
    data = by_arrow(
        columns_of(table),
        row_group_size=made["group_rows"],
        data_page_size=made["page_bytes"],
        write_batch_size=1,
        use_dictionary=made["dictionary"],
        dictionary_pagesize_limit=64,
        data_page_version=made["version"],
        compression=made["compression"],
        write_page_checksum=True,
    )
    sink = read(wandb_history_parquet.read, "m.parquet", data, batch_rows=batch_rows)
    assert sorted(rows(sink, "step", "raw_name", "value", "value_class")) == sorted(expected(cells_by_arrow(data)))
    assert sink.issues == []
    assert sink.coverage("x").skipped_bytes == 0
    in_order = [row[1:] for row in rows(sink, "raw_name", "seq", "step") if row[0] == "m0"]
    assert in_order == [(seq, row[0]) for seq, row in enumerate(table) if row[1] is not None]


@given(TABLE, BATCH_ROWS, st.sampled_from([1, 7, 1000]))
def test_every_cell_that_polars_wrote_is_read_back(table: list[tuple[Any, ...]], batch_rows: int, group: int) -> None:
    schema = {"step": pl.Int64, "m0": pl.Float64, "m1": pl.Float64, "m2": pl.Int32}
    frame = pl.DataFrame(columns_of(table), schema=schema)
    buffer = io.BytesIO()
    frame.write_parquet(buffer, row_group_size=group)
    sink = read(wandb_history_parquet.read, "m.parquet", buffer.getvalue(), batch_rows=batch_rows)
    found = sorted(rows(sink, "step", "raw_name", "value", "value_class"))
    assert found == sorted(expected(frame.to_dict(as_series=False)))


@given(st.permutations(range(30)), BATCH_ROWS, st.booleans())
def test_rows_of_a_history_are_numbered_by_their_step(steps: list[int], batch_rows: int, padded: bool) -> None:
    values = [None if padded and step == 3 else math.nan if step % 5 == 1 else step / 7 for step in steps]
    data = by_arrow({"_step": steps, "m0": values, "m1": [1.0] * 30})
    sink = read(wandb_history_parquet.read, "h.parquet", data, batch_rows=batch_rows)
    of_first = [row for row in rows(sink, "step", "seq", "value", "value_class", "raw_name") if row[-1] == "m0"]
    found = [row[1:] for row in sorted(of_first)]
    assert found == [
        (step, shown(None if nan and not padded else value), "null" if nan and not padded else classed(value), "m0")
        for step, value in sorted(zip(steps, values, strict=True))
        if value is not None
        for nan in [math.isnan(value)]
    ]


@given(st.integers(0, 1 << 30), st.integers(1, 255))
def test_a_damaged_file_gives_cells_of_the_file_or_states_its_loss(at: int, change: int) -> None:
    table = [(step, step / 7, None if step % 3 else -step / 9, step) for step in range(40)]
    data = by_arrow(columns_of(table), row_group_size=10, write_page_checksum=True)
    torn = bytearray(data)
    torn[at % len(torn)] ^= change
    try:
        sink: Bounded = read(wandb_history_parquet.read, "m.parquet", bytes(torn))
    except (InputError, NotMine):
        return
    known = set(expected(columns_of(table)))
    pages = {row for row in rows(sink, "step", "raw_name", "value", "value_class") if row[1] in NAMES}
    told = {issue.code for issue in sink.issues}
    assert pages <= known or told or _footer_begin(data) <= at % len(torn)


def _footer_begin(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


@pytest.mark.parametrize("stored_on_disk", [False, True])
def test_half_a_million_cells_in_one_row_group(tmp_path: Path, true_size: None, stored_on_disk: bool) -> None:
    del true_size
    path = tmp_path / "run" / "history.parquet"
    path.parent.mkdir()
    count = 300_000
    table = {
        "step": list(range(count)),
        "m0": [math.nan if i == 222_222 else i / 7 for i in range(count)],
        "m1": [None if i % 2 else i / 3 for i in range(count)],
        "m2": [i % 1000 for i in range(count)],
    }
    path.write_bytes(by_arrow(table, row_group_size=count, write_page_checksum=True))
    assert shape_of(path.read_bytes()).rows == count
    run = pipeline.ingest_run(path.parent, store=tmp_path / "store" if stored_on_disk else None)
    found = run.collect("metrics").select("step", "raw_name", "value", "value_class").rows()
    assert [tuple(map(shown, row)) for row in sorted(found, key=lambda r: (r[1], r[0]))] == expected(
        cells_by_arrow(path.read_bytes())
    )
