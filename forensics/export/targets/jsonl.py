"""JSON lines: one object per point, or with `wide` one per record; NaN and the infinities are strings, never null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from forensics.export._wide import rows_of
from forensics.export.points import tagged
from forensics.export.target import Export, File, Selection, Target
from forensics.io.tolerant_json import dumps


def write(selection: Selection) -> Export:
    """Write the points; a key whose value is null is left out, but `value` itself."""
    if not selection.wide:
        rows = selection.points.iter_rows(named=True)
        return Export((_file({k: v for k, v in row.items() if v is not None or k == "value"} for row in rows),))
    wide = rows_of(tagged(selection.points))
    return Export((_file(row.axes | row.values for row in wide.rows),), wide.notes)


def _file(rows: Iterable[Mapping[str, object]]) -> File:
    return File("", b"".join(dumps(row, compact=True) + b"\n" for row in rows))


TARGET = Target("jsonl", write, wide=True)
