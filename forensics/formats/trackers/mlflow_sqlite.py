"""MLflow's SQLite store (`mlflow.db`): metrics of all its runs, their parameters, tags and how each ended.

The store writes a NaN as value 0 with `is_nan` set, and an infinity as the largest double; both are read as what was
logged. Each run is an attempt of its own, in the order of the first points; settings of the run that began last are the
configuration, the others' are under `runs.<attempt>.`. The database is read page by page, with the pages of the
write-ahead log beside it, and no SQL is run.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping

from forensics.formats.kit import Limits, Opened, Out, Sniff, ingester
from forensics.formats.rows.json_records import number
from forensics.formats.rows.metrics import MetricRows, int64
from forensics.formats.trackers._tables import LOG, MLFLOW, every_row, open_tables, settle_database, text, variant
from forensics.formats.trackers.points import Point, TrackedPoints, TrackerFacts, time_of
from forensics.io.sqlite import pages as sqlite_pages
from forensics.io.sqlite.pages import Cell, Database, Row, Table

_POINTS = ("key", "value", "timestamp", "run_uuid", "step", "is_nan")
_RUNS = ("run_uuid", "name", "status", "start_time", "end_time", "source_version")
_MOST_RUNS = 10_000


@ingester(
    "mlflow_sqlite",
    version=4,
    sniff=Sniff(magic=(sqlite_pages.MAGIC,)),
    emits=("metrics", "events", "facts"),
    beside=(("", LOG),),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one database; raises `NotMine` when it has no `metrics` table of MLflow."""
    db, tables = open_tables(opened, MLFLOW)
    metric_rows = MetricRows(out, limits)
    points = TrackedPoints(metric_rows, opened.source.rank, opened.source.attempt or 0)
    for row in every_row(db, tables, "metrics", _POINTS, out, like=_is_point):
        points.add(_point(row.cells, row.byte))
    metric_rows.close()
    facts = TrackerFacts()
    under, names = _runs(db, tables, points, facts)
    points.tell(facts, names, under)
    _settings(db, tables, under, facts)
    facts.write(out)
    out.format(variant("MLflow database", len(points.runs), db))
    settle_database(opened, db, out, points.records)


def _point(cells: tuple[Cell, ...], byte: int | None) -> Point:
    key, stored, stamp, run, step, is_nan = cells
    return Point(text(run), text(key), _value(stored, is_nan), int64(_float(step)) or 0, time_of(_float(stamp)), byte)


def _is_point(row: Row) -> bool:
    key, stored, stamp, run, *_ = row.cells
    return isinstance(key, str) and isinstance(stored, (int, float)) and isinstance(stamp, int) and isinstance(run, str)


def _float(cell: Cell) -> float | None:
    return number(text(cell) if isinstance(cell, bytes) else cell)


def _value(stored: Cell, is_nan: Cell) -> float | None:
    """The value that was logged; `is_nan` is a boolean of 0 and 1."""
    if is_nan not in (None, 0, "0"):
        return math.nan
    value = _float(stored)
    if value is not None and abs(value) == sys.float_info.max:
        return math.copysign(math.inf, value)
    return value


def _runs(
    db: Database, tables: Mapping[str, Table], points: TrackedPoints, facts: TrackerFacts
) -> tuple[dict[str, str], dict[str, str]]:
    """Note how each run ended; gives the prefix of each run's settings, and its name."""
    if "runs" not in tables:
        return {}, {}
    found: list[tuple[int, str, tuple[Cell, ...]]] = []
    for row in sqlite_pages.rows(db, tables["runs"], _RUNS):
        if len(found) >= _MOST_RUNS:
            break
        found.append((int64(_float(row.cells[3])) or 0, text(row.cells[0]), row.cells))
    found.sort(key=lambda one: (points.attempt_of(one[1]) is not None, one[0], points.attempt_of(one[1]) or 0))
    under: dict[str, str] = {}
    for index, (_, run, cells) in enumerate(found):
        attempt = points.attempt_of(run)
        label = f"pointless-{index}" if attempt is None else str(attempt)
        under[run] = "" if index == len(found) - 1 else f"runs.{label}."
        _ending(cells, under[run], facts)
    return under, {run: text(cells[1]) or run for _, run, cells in found}


def _ending(cells: tuple[Cell, ...], under: str, facts: TrackerFacts) -> None:
    _, name, status, start, end, commit = cells
    facts.put("exit", f"{under}mlflow.status", text(status))
    facts.put("progress", f"{under}mlflow.start_time", int64(_float(start)))
    facts.put("progress", f"{under}mlflow.end_time", int64(_float(end)))
    if name:
        facts.put("env", f"{under}mlflow.run_name", text(name))
    if commit:
        facts.put("versions", f"{under}mlflow.source_version", text(commit))


def _settings(db: Database, tables: Mapping[str, Table], under: Mapping[str, str], facts: TrackerFacts) -> None:
    for table, note in (("params", facts.setting), ("tags", facts.tag)):
        if table in tables:
            for row in sqlite_pages.rows(db, tables[table], ("key", "value", "run_uuid")):
                key, value, run = (text(cell) for cell in row.cells)
                note(key, value, under.get(run, "runs.unknown." if len(under) > 1 else ""))
