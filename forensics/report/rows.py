"""Rows of a table for people and programs: NaN is printed as NaN, null is an empty cell, text cannot direct a terminal.

Text fits the width: cells of long text are cut, numbers, sources and `file:line` never; what still does not fit is
printed as one field under the other.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import polars as pl

from forensics.io.safe_text import csv_cell, printable
from forensics.io.tolerant_json import dumps
from forensics.patterns import lazily
from forensics.report.json_v1 import encoded
from forensics.report.payload import Accounted, headed, read_payload
from forensics.report.style import LABEL_CHARS, PLAIN, Style

_GAP = "  "
_LEAST_CHARS = 16
_PLACE = lazily(r".*:\d+")
_WHOLE = frozenset(("source", "path", "sha256", "place"))


class Page(Accounted, frozen=True):
    """Rows, of `total` that there are, with the account of the run that they are of."""

    rows: pl.DataFrame
    total: int


def render(page: Page, form: str, style: Style = PLAIN) -> Iterator[str]:
    """Write rows as text, CSV, JSON or JSON lines."""
    rows, total = page.rows, page.total
    if form == "csv":
        yield from _csv(rows)
    elif form == "jsonl":
        yield from (dumps(_plain(row), compact=True).decode() for row in rows.iter_rows(named=True))
    elif form == "json":
        columns = [{"name": name, "type": str(dtype)} for name, dtype in rows.schema.items()]
        found = {"columns": columns, "total": total, "rows": [_plain(row) for row in rows.iter_rows(named=True)]}
        yield encoded(headed("forensics.query/1", found | read_payload(page.coverage, page.issues)))
    else:
        yield from _text(rows, style)
        if total > rows.height:
            yield f"... and {total - rows.height:,} more rows: --limit 0 shows all"
        elif not total:
            yield "(no rows)"


def render_tables(page: Page, form: str, style: Style = PLAIN) -> Iterator[str]:
    """Write the columns of each table, a row per column; for people one or more lines per table."""
    if form != "text":
        yield from render(page, form, style)
        return
    for (table, count), columns in page.rows.group_by("table", "rows", maintain_order=True):
        yield from style.field(str(table), f"{count:,} rows: {', '.join(columns['column'])}")


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON
    """A value as JSON; types without a form in JSON (times, decimals, bytes) as text."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}  # type: ignore[reportUnknownVariableType] # rows of a query
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]  # type: ignore[reportUnknownVariableType] # rows of a query
    return value if value is None or isinstance(value, str | int | float) else str(value)


def cell(value: object) -> str:
    """One value, printable: shortest digits of a number, NaN as `NaN`, null as nothing."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "NaN" if value != value else repr(value)  # noqa: PLR0124 - only NaN does not equal itself
    if isinstance(value, bool):
        return str(value).lower()
    return printable(value if isinstance(value, str) else str(value))


def _csv(rows: pl.DataFrame) -> Iterator[str]:
    buffer = io.StringIO()
    lines = csv.writer(buffer, lineterminator="\n")
    for row in (rows.columns, *rows.iter_rows()):
        lines.writerow(csv_cell(v) if isinstance(v, str) else cell(v) for v in row)
    yield buffer.getvalue().removesuffix("\n")


def _text(rows: pl.DataFrame, style: Style) -> Iterator[str]:
    names = [printable(name) for name in rows.columns]
    table = [[cell(value) for value in row] for row in rows.iter_rows()]
    widths = [max(map(len, column)) for column in zip_longest(names, *table, fillvalue="")]
    numeric = [dtype.is_numeric() for dtype in rows.dtypes]
    cuttable = [dtype == pl.String and name not in _WHOLE for name, dtype in rows.schema.items()]
    for row in table:
        cuttable = [may and not _PLACE.fullmatch(text) for may, text in zip(cuttable, row, strict=True)]
    fitted = _fitted(widths, cuttable, style.width)
    if fitted is None:
        yield from _fields(names, table, style)
        return
    for index, row in enumerate([names, *table]):
        cells = (_laid(*each) for each in zip(row, fitted, numeric, strict=True))
        line = _GAP.join(cells).rstrip()
        yield line if index else style.paint(line, "bold")


def _fitted(widths: Sequence[int], cuttable: Sequence[bool], width: int) -> list[int] | None:
    """Widths of columns that fit together, the widest text cut first; None when there are none."""
    fitted = list(widths)
    while (over := sum(fitted) + len(_GAP) * (len(fitted) - 1) - width) > 0:
        may = [i for i, cut in enumerate(cuttable) if cut and fitted[i] > _LEAST_CHARS]
        if not may:
            return None
        widest = max(may, key=lambda i: fitted[i])
        fitted[widest] = max(_LEAST_CHARS, fitted[widest] - over)
    return fitted


def _laid(text: str, width: int, numeric: bool) -> str:  # noqa: FBT001 - a column's alignment
    if len(text) > width:
        text = text[: width - 1] + "…"
    return text.rjust(width) if numeric else text.ljust(width)


def _fields(names: Sequence[str], table: Sequence[Sequence[str]], style: Style) -> Iterator[str]:
    for number, row in enumerate(table, 1):
        yield style.paint(f"row {number}", "bold")
        for name, text in zip(names, row, strict=True):
            if text:
                yield from style.field(name if len(name) < LABEL_CHARS else f"{name} ", text)
