"""Trackio's databases (`<project>.db`): one row of metrics as JSON for each call of `log`, and system metrics by time.

Non-finite numbers are strings in the JSON. Each run is an attempt of its own, in the order of the first points;
settings of the run that came last are the configuration, the others' are under `runs.<name>.`. The database is read
page by page and no SQL is run. It is kept in write-ahead mode: after a kill the last rows are in the `-wal` file beside
it only, whose committed pages are read as part of the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from forensics.formats.kit import Limits, Opened, Out, Sniff, ingester
from forensics.formats.rows.json_records import flat, is_media, number, object_of
from forensics.formats.rows.metrics import MetricRows, int64
from forensics.formats.trackers._tables import LOG, TRACKIO, every_row, open_tables, settle_database, text, variant
from forensics.formats.trackers.points import Point, TrackedPoints, TrackerFacts
from forensics.io.sqlite import pages as sqlite_pages
from forensics.io.sqlite.pages import Database, Row, Table

_COLUMNS = ("run_id", "run_name", "timestamp", "step", "metrics")
_NESTING = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEEP = 64


@ingester(
    "trackio_sqlite",
    version=3,
    sniff=Sniff(magic=(sqlite_pages.MAGIC,)),
    emits=("metrics", "facts"),
    beside=(("", LOG),),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one database; raises `NotMine` when it has no `metrics` table of Trackio."""
    db, tables = open_tables(opened, TRACKIO)
    metric_rows = MetricRows(out, limits)
    points = TrackedPoints(metric_rows, opened.source.rank, opened.source.attempt or 0)
    names: dict[str, str] = {}
    for name in ("metrics", "system_metrics"):
        if name in tables:
            names |= _table(db, tables, name, points, out)
    metric_rows.close()
    facts = TrackerFacts()
    under = _configs(db, tables["configs"], facts) if "configs" in tables else {}
    points.tell(facts, names, {run: under.get(name, "") for run, name in names.items()})
    facts.write(out)
    out.format(variant("Trackio database", len(points.runs), db))
    settle_database(opened, db, out, points.records)


def _is_record(row: Row) -> bool:
    _, run, stamp, _, document = row.cells
    return isinstance(run, str) and isinstance(stamp, str) and isinstance(document, str) and document.startswith("{")


def _table(db: Database, tables: Mapping[str, Table], name: str, points: TrackedPoints, out: Out) -> dict[str, str]:
    """Points of one table, the one of system metrics has times and no steps; gives its runs' names by their ids."""
    names: dict[str, str] = {}
    for row in every_row(db, tables, name, _COLUMNS, out, like=_is_record):
        run_id, run_name, stamp, step, document = row.cells
        record = object_of(text(document).encode("utf-8", "replace"))
        if record is None:
            out.issue("row-not-json", "the metrics of a row are no JSON object", byte=row.byte or 0)
            continue
        run, when = text(run_id) or text(run_name), _time(text(stamp))
        names.setdefault(run, text(run_name) or run)
        for key, cell in flat(record, "/", _NESTING, is_media):
            if cell is None or number(cell) is not None:
                points.add(Point(run, key, number(cell), int64(number(step)), when, row.byte))
    return names


def _time(stamp: str) -> int | None:
    """ISO time to ns, read as UTC where it names no zone."""
    try:
        when = datetime.fromisoformat(stamp[:_DEEP])
    except ValueError:
        return None
    since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH
    ns = (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
    return int64(ns) if ns > 0 else None


def _configs(db: Database, table: Table, facts: TrackerFacts) -> dict[str, str]:
    """Note the settings of each run; gives their prefix by the run's name."""
    told: dict[str, str] = {}
    found = [row.cells for row in sqlite_pages.rows(db, table, ("run_name", "config"))][:1000]
    for index, (run, document) in enumerate(found):
        under = told[text(run)] = "" if index == len(found) - 1 else f"runs.{text(run)}."
        for key, value in (object_of(text(document).encode("utf-8", "replace")) or {}).items():
            if not key.startswith("_"):
                facts.setting(key, value, under)
    return told
