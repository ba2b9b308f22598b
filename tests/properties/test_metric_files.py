"""Tables, lists and columns of metrics: whatever was written is read back, bit for bit, with its place."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.errors import InputError, NotMine
from forensics.formats.configs.yaml_leaves import leaves
from forensics.formats.metrics import json_lines as metrics_jsonl
from forensics.formats.metrics import table as metrics_csv
from forensics.formats.rows.delimited import rows_of
from forensics.formats.rows.json_records import places
from forensics.formats.wandb.exports import history_csv as wandb_history_csv
from forensics.formats.wandb.exports import history_parquet as wandb_history_parquet
from forensics.formats.wandb.exports import json_rows as wandb_export_json
from forensics.formats.wandb.exports.columns import chart_of
from forensics.io.limits import DEFAULT
from forensics.io.parquet_pages import shape_of
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink

NUMBER = st.floats(width=64)
CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)
PLAIN = st.text(st.sampled_from("abcxyz_/.-"), min_size=1, max_size=8)


def metrics(read: Any, name: str, data: bytes) -> pl.DataFrame:
    opened = opened_bytes(name, data)
    sink = SourceSink(opened.source)
    read(opened, sink, DEFAULT)
    assert sink.coverage("x").skipped_bytes == 0
    return sink.frames().get("metrics", pl.DataFrame({"step": [], "value": []}))


def same(one: float, other: float) -> bool:
    return one.hex() == other.hex()


def assert_same(frame: pl.DataFrame, values: list[float]) -> None:
    assert frame["step"].to_list() == list(range(len(values)))
    assert all(same(a, b) for a, b in zip(frame["value"].to_list(), values, strict=True))


@settings(deadline=None)  # the first case also loads what it needs
@given(st.lists(st.lists(CELL, min_size=2, max_size=4), min_size=1, max_size=8))
def test_any_cells_that_a_csv_writer_wrote_are_read_back_with_their_lines(rows: list[list[str]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    begins: list[int] = []
    for row in rows:
        begins.append(text.getvalue().count("\n") + 1)
        writer.writerow(row)
    data = text.getvalue().removeprefix("\ufeff").encode()
    read = list(rows_of(opened_bytes("t.csv", data)))
    assert [[c.removeprefix("\ufeff") for c in row.cells] for row in read] == [
        [c.removeprefix("\ufeff") for c in row] for row in rows
    ]
    assert [row.line for row in read] == begins


@settings(deadline=None)  # the first case also loads what it needs
@given(st.lists(NUMBER, min_size=1, max_size=30))
def test_every_route_gives_the_same_bits(values: list[float]) -> None:
    rows = [{"step": i, "metric": v} for i, v in enumerate(values)]
    table = "step,metric\n" + "".join(f"{i},{v!r}\n" for i, v in enumerate(values))
    history = "_step,metric\n" + "".join(f"{i},{v!r}\n" for i, v in enumerate(values))
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    scan = "".join(json.dumps({"_step": r["step"], "metric": r["metric"]}) + "\n" for r in rows)
    buffer = io.BytesIO()
    pl.DataFrame({"step": range(len(values)), "metric": values}, schema_overrides={"metric": pl.Float64}).write_parquet(
        buffer
    )
    for read, name, data in (
        (metrics_csv.read, "m.csv", table.encode()),
        (wandb_history_csv.read, "h.csv", history.encode()),
        (metrics_jsonl.read, "m.jsonl", lines.encode()),
        (wandb_export_json.read, "h.jsonl", scan.encode()),
        (wandb_history_parquet.read, "m.parquet", buffer.getvalue()),
    ):
        assert_same(metrics(read, name, data), values)


JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)  # the first case also loads what it needs
@given(
    records=st.lists(st.dictionaries(PLAIN, JSON, max_size=4), max_size=6),
    indent=st.sampled_from([None, 1]),
    root=st.booleans(),
)
def test_the_records_of_a_list_are_found_where_they_stand(
    records: list[dict[str, Any]], indent: int | None, *, root: bool
) -> None:
    inside: dict[str, Any] = {"other": [{"a": 1}], "log_history": records, "after": {"log_history": [{}]}}
    data = json.dumps(records if root else inside, indent=indent).encode()
    where = places(data) if root else places(data, "log_history")
    assert len(where.spans) == len(records)
    for index, ((begin, end), record) in enumerate(zip(where.spans, records, strict=True)):
        assert json.dumps(json.loads(data[begin:end])) == json.dumps(record)
        assert list(where.keys(index)) == list(record)
        for key, at in where.keys(index).items():
            assert data[at:].startswith(json.dumps(key).encode())
            assert where.line(at) == data[:at].count(b"\n") + 1


@settings(deadline=None)  # the first case also loads what it needs
@given(st.lists(st.tuples(PLAIN, PLAIN), min_size=1, max_size=4, unique=True))
def test_the_columns_of_a_chart_are_cut_into_run_and_metric(pairs: list[tuple[str, str]]) -> None:
    header = ["Step", *(f"{run} - {name}{bound}" for run, name in pairs for bound in ("", "__MIN", "__MAX"))]
    chart = chart_of(header)
    assert chart is not None
    assert [(c.run, c.metric) for c in chart.columns if not c.bound] == pairs
    assert [c.bound for c in chart.columns] == ["", "__MIN", "__MAX"] * len(pairs)


@settings(deadline=None)  # the first case also loads what it needs
@given(st.dictionaries(PLAIN, st.integers(-(10**17), 10**17) | st.booleans() | st.none(), min_size=1, max_size=8))
def test_a_flat_mapping_is_read_back_from_yaml(content: dict[str, Any]) -> None:
    yaml = pytest.importorskip("yaml")
    found = {leaf.path: leaf.value for leaf in leaves(yaml.safe_dump(content))}
    assert found == content


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80) | st.text(st.sampled_from("&*![]{}:-? \n'\"#|>%a1"), max_size=60))
def test_no_text_makes_the_yaml_reader_raise_anything_but_an_input_error(text: str) -> None:
    try:
        found = list(leaves(text))
    except InputError:
        return
    assert all(leaf.line >= 1 for leaf in found)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=120), st.integers(0, 400))
def test_no_footer_makes_the_page_check_raise_anything_but_an_input_error(footer: bytes, size: int) -> None:
    data = b"PAR1" + footer + size.to_bytes(4, "little") + b"PAR1"
    try:
        assert shape_of(data).rows >= 0
    except (InputError, NotMine):
        return
