"""Runs made of points, and a way to read an export back with the project's own ingesters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics.dialects.names import canonical
from forensics.export import target as targets
from forensics.export.points import select
from forensics.export.target import Export
from forensics.pipeline import ingest_run
from forensics.store.run import Run, run_of

Row = dict[str, Any]
Back = Callable[..., Run]
HOSTILE = (
    "\x1b[31mloss\x1b]0;owned\x07",
    "\u202eevil\u2066",
    "two\nlines\r",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(A1)",
    'quote"and,comma',
    "../../loss",
    "##[error]x",
    "<script>alert(1)</script>",
    "metric\u200bzero",
)


def made(rows: Sequence[Row], **tables: pl.DataFrame) -> Run:
    """A run whose points have what `rows` say; the rest as an ingester would fill it in."""
    filled = [
        {"source": "train.log", "attempt": 0, "seq": n, "name": canonical(r["raw_name"]).canonical, **r}
        for n, r in enumerate(rows)
    ]
    return run_of("made", {"metrics": pl.DataFrame(filled, infer_schema_length=None), **tables})


def exported(run: Run, to: str, *globs: str, wide: bool = False) -> Export:
    return targets.load(to).write(select(run, globs, wide=wide))


@pytest.fixture
def back(tmp_path: Path) -> Back:
    """Write an export below a folder and ingest that folder."""

    def read(export: Export, name: str = "x") -> Run:
        place = tmp_path / "back"
        for file in export.files:
            path = place / (file.path or name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
        return ingest_run(place)

    return read


def bits(value: float | None) -> str | None:
    """A value such that two are equal only if they are the same: NaN, -0.0 and null included."""
    return None if value is None else float(value).hex()


def points(run: Run, *columns: str) -> list[tuple[Any, ...]]:
    frame = run.scan("metrics").sort("source", "attempt", "rank", "seq", maintain_order=True).collect()
    return [(*row[:-1], bits(row[-1])) for row in frame.select(*columns, "value").iter_rows()]
