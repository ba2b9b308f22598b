"""Records of every series under each other: what a table with one row per record and one column per metric holds."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from forensics.export._records import Record, moved_note, records_of, tags_of
from forensics.export.points import seconds, series_of
from forensics.formats.rows.axes import CONSTANTS, EPOCHS, STEPS, TIMES

#: Columns that say where a record stands; `source` and `attempt` only where there are several series.
AXES = ("source", "attempt", "rank", "step", "epoch", "timestamp")
_TAKEN = frozenset((*AXES, *STEPS, *EPOCHS, *TIMES, *CONSTANTS))


class Row(Struct, frozen=True):
    """One record: where it stands, and its values by column."""

    axes: dict[str, str | float]
    values: dict[str, float | None]


class Wide(Struct, frozen=True):
    """The rows, the columns of metrics in the order of their first point, and what the shape costs."""

    rows: tuple[Row, ...]
    tags: tuple[str, ...]
    notes: tuple[str, ...]


def rows_of(points: pl.DataFrame) -> Wide:
    """Gather tagged points into rows; a metric whose name would be read as an axis stands under `metric/<name>`."""
    series = list(series_of(points))
    rows: list[Row] = []
    tags: dict[str, None] = {}
    moved = 0
    for one in series:
        records, late = records_of(one.points)
        moved += late
        tags |= dict.fromkeys(column(tag) for tag in tags_of(records))
        where: dict[str, str | float] = {"source": one.source, "attempt": one.attempt} if len(series) > 1 else {}
        where |= {} if one.rank is None else {"rank": one.rank}
        rows += [Row(where | _axes(r), {column(tag): value for tag, value in r.values.items()}) for r in records]
    return Wide(tuple(rows), tuple(tags), (moved_note(moved),) if moved else ())


def column(tag: str) -> str:
    """Name of the column of a metric."""
    return f"metric/{tag}" if tag.strip().lower() in _TAKEN else tag


def _axes(record: Record) -> dict[str, str | float]:
    axes: dict[str, str | float] = {}
    if record.step is not None:
        axes["step"] = record.step
    if record.epoch is not None:
        axes["epoch"] = record.epoch
    if record.t_ns is not None:
        axes["timestamp"] = seconds(record.t_ns)
    return axes
