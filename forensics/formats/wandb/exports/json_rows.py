"""JSON exports of W&B: rows of a history as a list, as columns or as lines, and the summary of a run.

A null was not logged. In a document that a data frame was written to, a bare NaN was not logged either, and is kept as
a null; the word `"NaN"` is a NaN, as `scan_history` spells it. In JSON lines a bare NaN is one too. `run.history()`
gives 500 sampled rows unless asked for more, and a file with exactly that many says so. A summary becomes facts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from operator import itemgetter
from typing import cast

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.facts import write_facts
from forensics.formats.rows.json_records import JsonLines, JsonList, flat, is_media, number, places, record_of
from forensics.formats.rows.metrics import MetricRows
from forensics.formats.rows.text import document, settle, settle_document
from forensics.formats.wandb.exports._rows import HistoryRows
from forensics.formats.wandb.exports.columns import HISTORY_AXES
from forensics.io.tolerant_json import loads

_HEAD_BYTES = 1 << 20
_NESTING = 4
_FACTS, _VALUE_CHARS = 10_000, 10_000

Record = Mapping[str, object]


@ingester("wandb_export_json", version=1, sniff=Sniff(glob=("*.json", "*.jsonl")), emits=("metrics", "facts"))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one export.

    Raises `NotMine` when no `_step`, `_runtime` or `_timestamp` of W&B is where an export has it.
    """
    head = opened.text_head(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] not in (b"[", b"{") or not any(f'"{name}"'.encode() in head for name in HISTORY_AXES):
        raise NotMine("no _step, _runtime or _timestamp")
    if head[:1] == b"[":
        _list(opened, out, limits)
    elif _lines(head):
        _read_lines(opened, out, limits)
    else:
        _object(opened, out, limits)


def _history(opened: Opened, out: Out, limits: Limits) -> HistoryRows:
    return HistoryRows(out, MetricRows(out, limits), opened.source.rank, opened.source.attempt or 0)


def _lines(head: bytes) -> bool:
    """Whether the first line is an object of its own, with a step in it that more lines follow."""
    first, more, _ = head.partition(b"\n")
    record = record_of(first) if more else None
    return record is not None and number(record.get("_step")) is not None


def _is_none(key: str, cell: object) -> bool:
    """Whether an object holds no numbers of the program: a medium, or what the writer notes for itself."""
    return is_media(key, cell) or (key == "_wandb" and isinstance(cell, dict))


def _cells(record: Record, *, bare_nan: bool) -> Iterator[tuple[str, float | None]]:
    """Numbers of a row, nested ones joined with a dot; media objects are no numbers. A padded cell gives None."""
    for key, cell in flat(record, ".", _NESTING, _is_none):
        value = number(cell)
        if isinstance(cell, float) and math.isnan(cell) and not bare_nan:
            yield key, None
        elif value is not None:
            yield key, value


def _charged(opened: Opened, cells: Iterable[tuple[str, float | None]]) -> Iterator[tuple[str, float | None]]:
    """Charge each cell by its joined name: a long one before many values would make them as long."""
    return opened.budget.each(cells, itemgetter(0))


def _list(opened: Opened, out: Out, limits: Limits) -> None:
    where = places(document(opened, limits))
    if not where.spans:
        raise NotMine("a list without objects")
    history = _history(opened, out, limits)
    records = JsonList(where, out)
    with closing(history):
        for line, record in records:
            history.add(_charged(opened, _cells(record, bare_nan=False)), line.number, line.byte)
    out.format("W&B history json")
    settle_document(opened, out, records=records.count, lost_bytes=records.lost_bytes)


def _read_lines(opened: Opened, out: Out, limits: Limits) -> None:
    history = _history(opened, out, limits)
    lines = JsonLines(opened, out)
    with closing(history):
        for line, record in lines:
            history.add(_charged(opened, _cells(record, bare_nan=True)), line.number, line.byte)
    out.format("W&B history json lines")
    settle(opened, out, records=history.count, lost_bytes=lines.lost_bytes, reason="lines that are no JSON object")


def _object(opened: Opened, out: Out, limits: Limits) -> None:
    found = loads(document(opened, limits), limits)
    if not isinstance(found, dict):
        raise NotMine("not an object")
    content = cast("dict[str, object]", found)
    columns = _columns(content)
    if columns is None:
        _summary(content, opened, out)
        return
    names = list(columns)
    history = _history(opened, out, limits)
    with closing(history):
        for row in zip(*columns.values(), strict=True):
            history.add(_charged(opened, _cells(dict(zip(names, row, strict=True)), bare_nan=False)), None, None)
    out.format("W&B history json by column")
    settle_document(opened, out, records=history.count)


def _columns(content: dict[str, object]) -> dict[str, list[object]] | None:
    """Columns of equal length, from the forms `split`, `list` and `columns` of a data frame; None for other objects."""
    names, rows = content.get("columns"), content.get("data")
    if isinstance(names, list) and isinstance(rows, list):
        width = len(cast("list[object]", names))
        whole = [cast("list[object]", r) for r in cast("list[object]", rows) if isinstance(r, list)]
        whole = [row for row in whole if len(row) == width]
        return {str(name): [row[i] for row in whole] for i, name in enumerate(cast("list[object]", names))}
    axis = content.get("_step")
    if isinstance(axis, list):
        size = len(cast("list[object]", axis))
        lists = ((k, cast("list[object]", v)) for k, v in content.items() if isinstance(v, list))
        return {name: cells for name, cells in lists if len(cells) == size}
    if isinstance(axis, dict):
        index = list(cast("dict[str, object]", axis))
        frames = ((k, cast("dict[str, object]", v)) for k, v in content.items() if isinstance(v, dict))
        return {name: [cells.get(i) for i in index] for name, cells in frames}
    return None


def _summary(content: dict[str, object], opened: Opened, out: Out) -> None:
    if not any(number(content.get(name)) is not None for name in HISTORY_AXES):
        raise NotMine("neither a history nor a summary")
    every = flat(content, ".", _NESTING, lambda key, cell: isinstance(cell, dict) and key == "_wandb")
    told = ((f"summary.{key}", cell) for key, cell in every if isinstance(cell, (str, int, float)))
    rows = list(islice((row for row in told if len(str(row[1])) < _VALUE_CHARS), _FACTS))
    write_facts(out, ((key, value, "progress") for key, value in rows))
    out.format("W&B summary")
    settle_document(opened, out, records=len(rows))
