"""CSV for spreadsheets and people: names that a spreadsheet would run as a formula are disarmed, numbers are exact.

Control and bidirectional characters of text become visible escapes, and text that begins like a formula gets a `'`.
Numbers are never touched: the shortest digits that give the same 64 bits, `NaN`, `inf`, `-inf`; null is an empty cell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import polars as pl

from forensics.export._wide import AXES, Row, rows_of
from forensics.export.points import tagged
from forensics.export.target import Export, File, Selection, Target
from forensics.io.safe_text import csv_cell


def write(selection: Selection) -> Export:
    """Write one row per point, or with `wide` one row per record and a column per metric."""
    if not selection.wide:
        return Export((File("", _disarmed(selection.points).write_csv().encode()),))
    wide = rows_of(tagged(selection.points))
    buffer = io.StringIO()
    lines = csv.writer(buffer, lineterminator="\n")
    axes = [name for name in AXES if any(name in row.axes for row in wide.rows)]
    lines.writerow([*axes, *(csv_cell(tag) for tag in wide.tags)])
    lines.writerows(_cells(row, axes, wide.tags) for row in wide.rows)
    return Export((File("", buffer.getvalue().encode()),), wide.notes)


def _disarmed(points: pl.DataFrame) -> pl.DataFrame:
    """Every text column through `csv_cell`, each distinct text once."""
    texts = [name for name, dtype in points.schema.items() if dtype == pl.String]
    known = {text for name in texts for text in points[name].drop_nulls().unique()}
    safe = {text: csv_cell(text) for text in known}
    return points.with_columns(
        pl.col(name).replace_strict(safe, default=None, return_dtype=pl.String) for name in texts
    )


def _cells(row: Row, axes: list[str], tags: tuple[str, ...]) -> Iterator[str]:
    yield from (_cell(row.axes.get(name)) for name in axes)
    yield from (_cell(row.values.get(tag)) for tag in tags)


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return csv_cell(value)
    return "NaN" if value != value else repr(value)  # noqa: PLR0124 - NaN is what does not equal itself


TARGET = Target("csv", write, wide=True)
