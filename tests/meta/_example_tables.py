"""The tables of an example: written row by row, or, where they are long, column by column with their progressions.

A row form names its columns in the fence: `metrics step,name,value`. A column form has none there, and a line for each
column of the table or each metric, which may go on in the next lines:

    step: 1..40
    loss: 2.3 2.2 2.1..0.4/-0.1 nan*3
    lr: 0.001

`a..b` counts by one (or by `/d`) and includes both; `v*n` is n times v, `(v w)*n` n times v and w; `-` is no value; one
lone value holds for all.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from decimal import Decimal

import polars as pl

from forensics.store.schema import TABLES

FENCE = re.compile(r"^ *```(?P<head>\w+(?: [\w,]+)?)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"(?P<name>\S+): (?P<cells>.*)")
_PROGRESSION = re.compile(r"(?P<first>-?[\d.]+?)\.\.(?P<last>-?\d[\d.]*)(?:/(?P<by>-?[\d.]+))?")
_REPEATED = re.compile(r"(?P<value>.+)\*(?P<times>\d+)")
_GROUP = re.compile(r"(?<!\S)\((?P<cells>[^()]*)\)\*(?P<times>\d+)(?!\S)")
_ABSENT = "-"


def frames_of(text: str) -> dict[str, pl.DataFrame]:
    """Give the tables of an example by name; fences of one table follow one another."""
    frames = [frame_of(fence["head"], fence["body"]) for fence in FENCE.finditer(text)]
    return {t: pl.concat([f for name, f in frames if name == t], how="diagonal") for t, _ in frames}


def frame_of(head: str, body: str) -> tuple[str, pl.DataFrame]:
    """Give one fence as its table's name and rows."""
    table, _, names = head.partition(" ")
    types = TABLES[table]
    written = list(_by_row(names.split(","), body) if names else _by_column(types, body))
    rows = [_completed(row, types, i) for i, row in enumerate(written)]
    return table, pl.DataFrame(rows, schema={c: types[c] for c in types if any(c in row for row in rows)})


def cells_of(text: str) -> Iterator[str]:
    """Give the cells that a column's text stands for."""
    plain = _GROUP.sub(lambda found: " ".join([found["cells"]] * int(found["times"])), text)
    for token in plain.split():
        if progression := _PROGRESSION.fullmatch(token):
            at, last, by = (Decimal(progression[k] or "1") for k in ("first", "last", "by"))
            assert (last - at) % by == 0, f"{token} does not end at its last value"
            while (last - at) * by >= 0:
                yield str(at)
                at += by
        elif repeated := _REPEATED.fullmatch(token):
            yield from [repeated["value"]] * int(repeated["times"])
        else:
            yield token


def _by_row(names: list[str], body: str) -> Iterator[dict[str, str]]:
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    for cells in csv.reader(io.StringIO("\n".join(lines))):
        assert len(cells) == len(names), f"a row has not {len(names)} cells: {cells}"
        yield dict(zip(names, cells, strict=True))


def _by_column(types: dict[str, pl.DataType], body: str) -> Iterator[dict[str, str]]:
    columns: dict[str, str] = {}
    for line in filter(None, map(str.strip, body.splitlines())):
        if named := _COLUMN.match(line):
            columns[named["name"]] = named["cells"]
        else:
            columns[next(reversed(columns))] += f" {line}"
    cells = {name: list(cells_of(text)) for name, text in columns.items()}
    n = max(map(len, cells.values()))
    assert all(len(column) in {1, n} for column in cells.values()), {k: len(v) for k, v in cells.items()}
    for i in range(n):
        record = {name: column[i if len(column) > 1 else 0] for name, column in cells.items()}
        shared = {"seq": str(i)} if "seq" in types and "seq" not in record else {}
        shared |= {name: "" if value == _ABSENT else value for name, value in record.items() if name in types}
        metrics = {name: value for name, value in record.items() if name not in types and value != _ABSENT}
        yield from ({**shared, "name": name, "value": value} for name, value in metrics.items())
        if not any(name not in types for name in record):
            yield shared


def _completed(row: dict[str, str], types: dict[str, pl.DataType], index: int) -> dict[str, object]:
    """A row with its types, and with what an example leaves out: its file, its place in it, its printed name."""
    usual: dict[str, object] = {"source": "run.log"} if "source" in types else {}
    usual |= {"seq": index} if "seq" in types else {}
    usual |= {"raw_name": row["name"]} if "raw_name" in types and "name" in row else {}
    return usual | {name: _value(cell, types[name]) for name, cell in row.items()}


def _value(cell: str, dtype: pl.DataType) -> object:
    if cell == "":
        return None
    if dtype.is_integer():
        return int(cell)
    if dtype.is_float():
        return float(cell)
    return cell == "true" if dtype == pl.Boolean() else cell
