"""JSON lines and documents against the json module: every number of every record, with its step, line and byte."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics import pipeline
from forensics.errors import InputError
from forensics.formats.evals import samples as eval_samples
from forensics.formats.metrics import json_lines as metrics_jsonl
from forensics.formats.metrics import trainer_state
from forensics.formats.wandb.exports import json_rows as wandb_export_json
from forensics.io.tolerant_json import loads

from .tables import BATCH_ROWS, BLOCK_BYTES, NUMBER, classed, read, rows, shown

pytestmark = pytest.mark.usefixtures("only_owned_columns")
NAME = st.sampled_from(["m0", "m1", "ü/µ", "a b", 'q"q', "\\"])
LEAF = st.one_of(
    NUMBER,
    st.none(),
    st.booleans(),
    st.integers(-(1 << 80), 1 << 80),
    st.sampled_from(["NaN", "-inf", "0.5", "words", "1_000", "\ud800", "é\u2028"]),
)
CELL = st.one_of(LEAF, st.lists(LEAF, max_size=2), st.dictionaries(NAME, LEAF, max_size=2))
STEP = st.integers(0, 9) | st.integers(-(1 << 63), (1 << 63) - 1)
RECORDS = st.lists(st.tuples(STEP, st.dictionaries(NAME, CELL, max_size=4)), max_size=30)
WORDS = {"NaN": math.nan, "-inf": -math.inf, "0.5": 0.5}


def numbers(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float | None]]:
    """What of a record is a metric: numbers, texts that print one, nulls; nested names joined with a slash."""
    for key, cell in record.items():
        if isinstance(cell, dict):
            yield from numbers(cell, f"{prefix}{key}/")
        elif cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool)):
            yield prefix + key, None if cell is None else float(cell)
        elif isinstance(cell, str) and cell in WORDS:
            yield prefix + key, WORDS[cell]


def joined(lines: list[str]) -> tuple[bytes, list[int]]:
    data = [line.encode() for line in lines]
    begins, at = [], 0
    for line in data:
        begins.append(at)
        at += len(line) + 1
    return b"\n".join([*data, b""]), begins


@given(RECORDS, BATCH_ROWS, BLOCK_BYTES, st.booleans())
def test_every_number_of_json_lines_is_the_one_that_the_json_module_gives(
    records: list[tuple[int, dict[str, Any]]], batch_rows: int, block_bytes: int, ascii_only: bool
) -> None:
    texts = [json.dumps({"m9": 0.5, **r, "step": s}, ensure_ascii=True) for s, r in records]
    if not ascii_only:
        texts = [text.replace("\\u00fc", "ü").replace("\\u00e9", "é").replace("\\u00b5", "µ") for text in texts]
    data, begins = joined(['{"step": 0, "m9": 1}', "", *texts])
    sink = read(metrics_jsonl.read, "m.jsonl", data, batch_rows=batch_rows, block_bytes=block_bytes)
    expected: list[tuple[Any, ...]] = [(0, 0, 1, 0, "m9", "1.0", "finite")]
    for seq, text in enumerate(texts, start=1):
        peer = json.loads(text)
        step = peer.pop("step")
        expected += [
            (seq, step, seq + 2, begins[seq + 1], name, shown(value), classed(value)) for name, value in numbers(peer)
        ]
    assert rows(sink, "seq", "step", "line", "byte", "raw_name", "value", "value_class") == expected
    assert sink.coverage("x").skipped_bytes == 0


@given(st.lists(st.sampled_from(['{"step": 1, "m0": 2', "[1]", "words", "{}", ""]), max_size=9), BLOCK_BYTES)
def test_lines_that_are_no_records_cost_their_bytes_and_no_other_row(bad: list[str], block_bytes: int) -> None:
    good = '{"step": 5, "m0": 0.5}'
    data, begins = joined([good, *(part for line in bad for part in (line, good))])
    sink = read(metrics_jsonl.read, "m.jsonl", data, block_bytes=block_bytes)
    assert rows(sink, "byte", "value") == [(begins[2 * i], "0.5") for i in range(len(bad) + 1)]
    lost = [line for line in bad if line not in {"", "{}"}]
    assert sink.coverage("x").skipped_bytes == sum(map(len, lost))
    assert [issue.byte for issue in sink.issues] == [begins[2 * i + 1] for i, line in enumerate(bad) if line in lost]


DOCUMENT = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAME, inner, max_size=4))


def same(one: object, other: object) -> bool:
    """Equal with NaN equal to itself, 1 different from 1.0, and -0.0 from 0.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


def spelled(value: object) -> object:
    """A document as it can be encoded: a lone surrogate as its escape."""
    return json.loads(json.dumps(value).replace("\\ud800", "\\\\ud800"))


@given(DOCUMENT, st.sampled_from([None, 1]), st.booleans())
def test_a_document_is_the_one_that_the_json_module_gives(document: object, indent: int | None, bom: bool) -> None:
    data = json.dumps(document, indent=indent).encode()
    assert same(loads(b"\xef\xbb\xbf" + data if bom else data), spelled(document))


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(1 << 63), (1 << 64) - 1) | st.text())
def test_a_document_is_the_one_that_orjson_gives(document: object) -> None:
    try:
        data = orjson.dumps([document])
    except orjson.JSONEncodeError:
        return
    assert same(loads(data), orjson.loads(data))


@pytest.mark.parametrize("text", ["1e999", "-1e999", "[1e400, 2]", "123456789012345678901234567890", "-0", "-0.0"])
def test_numbers_beyond_a_float_are_those_of_the_json_module(text: str) -> None:
    assert same(loads(text.encode()), json.loads(text))


@given(st.text(st.sampled_from('{}[]",:0123456789.eE+-tfn\\u \n'), max_size=24))
def test_a_text_is_refused_where_the_json_module_refuses_it(text: str) -> None:
    try:
        peer: object = json.loads(text, strict=False)
    except ValueError:
        with pytest.raises(InputError):
            loads(text.encode())
        return
    assert same(loads(text.encode()), peer)


@given(RECORDS, st.sampled_from([None, 2]), BATCH_ROWS)
def test_every_number_of_a_trainer_state_is_in_its_history(
    records: list[tuple[int, dict[str, Any]]], indent: int | None, batch_rows: int
) -> None:
    history = [{**{k: v for k, v in r.items() if not isinstance(v, dict)}, "m9": 0.5, "step": s} for s, r in records]
    data = json.dumps({"global_step": 3, "log_history": history, "epoch": 1.5}, indent=indent).encode()
    sink = read(trainer_state.read, "trainer_state.json", data, batch_rows=batch_rows)
    found = rows(sink, "seq", "step", "raw_name", "value", "value_class")
    assert found == [
        (seq, record["step"], name, shown(value), classed(value))
        for seq, record in enumerate(json.loads(data)["log_history"])
        for name, value in numbers({k: c for k, c in spelled(record).items() if k != "step"})  # type: ignore[attr-defined]
    ]
    for line, byte, name in rows(sink, "line", "byte", "raw_name"):
        assert data[byte:].startswith(json.dumps(name).encode())
        assert line == data[:byte].count(b"\n") + 1


@given(
    st.lists(st.dictionaries(st.sampled_from(["m0", "m1"]), NUMBER, max_size=2), min_size=1, max_size=30),
    st.sampled_from(["lines", "list", "columns", "split"]),
    BATCH_ROWS,
)
def test_every_number_of_an_export_of_wandb_is_read(
    records: list[dict[str, float]], form: str, batch_rows: int
) -> None:
    table = [{"_step": step, **record} for step, record in enumerate(records)]
    names = ["_step", "m0", "m1"]
    document: object = table
    if form == "columns":
        document = {name: [row.get(name) for row in table] for name in names}
    elif form == "split":
        document = {
            "columns": names,
            "index": list(range(len(table))),
            "data": [[r.get(n) for n in names] for r in table],
        }
    text = "\n".join(json.dumps(row) for row in table) + "\n" if form == "lines" else json.dumps(document)
    sink = read(wandb_export_json.read, "h.json", text.encode(), batch_rows=batch_rows)
    keeps_nan = form == "lines"  # a data frame pads with NaN what a row did not log
    expected = []
    for step, row in enumerate(records):
        for name in names[1:] if form in {"columns", "split"} else row:
            value = row.get(name)
            if value is None:
                continue
            value = None if math.isnan(value) and not keeps_nan else value
            expected.append((step, name, shown(value), classed(value)))
    if len(records) == 1 and form == "lines":
        return  # one object is a summary
    assert rows(sink, "step", "raw_name", "value", "value_class") == expected


@given(
    st.lists(st.tuples(st.integers(0, 1 << 40), NUMBER | st.booleans(), NUMBER), min_size=1, max_size=30),
    BATCH_ROWS,
    BLOCK_BYTES,
)
def test_every_score_of_the_samples_of_an_evaluation_is_read(
    scores: list[tuple[int, float, float]], batch_rows: int, block_bytes: int
) -> None:
    texts = [
        json.dumps({"doc_id": doc, "resps": [], "filter": "none", "metrics": ["acc", "f1"], "acc": acc, "f1": f1})
        for doc, acc, f1 in scores
    ]
    data, begins = joined(texts)
    sink = read(eval_samples.read, "samples_task.jsonl", data, batch_rows=batch_rows, block_bytes=block_bytes)
    frame = sink.frames()["eval_samples"].select("seq", "line", "byte", "task", "doc", "metric", "value")
    assert [tuple(map(shown, row)) for row in frame.rows()] == [
        (seq, seq + 1, begins[seq], "task", str(peer["doc_id"]), name, repr(float(peer[name])))
        for seq, peer in enumerate(map(json.loads, texts))
        for name in ("acc", "f1")
    ]


@pytest.mark.parametrize("stored_on_disk", [False, True])
def test_half_a_million_points_of_json_lines(tmp_path: Path, true_size: None, stored_on_disk: bool) -> None:
    del true_size
    path = tmp_path / "run" / "metrics.jsonl"
    path.parent.mkdir()
    with path.open("w") as file:
        for i in range(250_000):
            file.write(json.dumps({"step": i, "m0": math.nan if i == 99_999 else i / 7, "m1": {"x": -i}}) + "\n")
    run = pipeline.ingest_run(path.parent, store=tmp_path / "store" if stored_on_disk else None)
    found = run.collect("metrics").select("step", "line", "raw_name", "value").rows()
    with path.open() as file:
        expected = [
            (peer["step"], number, name, value)
            for number, peer in enumerate(map(json.loads, file), start=1)
            for name, value in numbers(peer)
            if name != "step"
        ]
    assert len(expected) == 500_000
    assert [tuple(map(shown, row)) for row in found] == [tuple(map(shown, row)) for row in expected]


def test_a_state_that_is_cut_behind_a_record_is_stated_and_its_checkpoint_is_not_complete() -> None:
    data = b'{"log_history": [{"step": 1, "m0": 0.5}'
    sink = read(trainer_state.read, "checkpoint-1/trainer_state.json", data)
    assert rows(sink, "step", "value") == [(1, "0.5")]
    assert [issue.code for issue in sink.issues] == ["damaged"]
    assert sink.frames()["checkpoints"]["complete"].to_list() == [False]
