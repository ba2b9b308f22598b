"""Records of every series under each other: what a table with one row per record and one column per metric holds."""

from __future__ import annotations

import polars as pl
from msgspec import Struct, field

from forensics.export.points import seconds, series_of
from forensics.formats.rows.axes import CONSTANTS, EPOCHS, STEPS, TIMES
from forensics.report.phrases import plural

#: Columns that say where a record is; `source` and `attempt` only where there are several series.
AXES = ("source", "attempt", "rank", "step", "epoch", "timestamp")
_TAKEN = frozenset((*AXES, *STEPS, *EPOCHS, *TIMES, *CONSTANTS))


class Record(Struct):
    """One row: the step as the file had it, the time and epoch of its first point, and values by tag (None: null)."""

    step: int | None
    epoch: float | None
    t_ns: int | None
    values: dict[str, float | None] = field(default_factory=dict[str, "float | None"])


def records_of(points: pl.DataFrame) -> tuple[list[Record], int]:
    """Rows of one series in the order of steps, those without a step last; and how many points took another's time.

    A tag that comes again at the same step begins a further row of that step, so that no point is lost.
    """
    groups: dict[tuple[int, int], list[Record]] = {}
    seen: dict[tuple[tuple[int, int], str], int] = {}
    moved = 0
    for seq, step, epoch, t_ns, tag, value in points.select("seq", "step", "epoch", "t_ns", "tag", "value").iter_rows():
        key = (0, step) if step is not None else (1, seq)
        rows = groups.setdefault(key, [])
        nth = seen.get((key, tag), 0)
        seen[key, tag] = nth + 1
        if nth == len(rows):
            rows.append(Record(step, epoch, t_ns))
        row = rows[nth]
        moved += row.t_ns != t_ns
        row.values[tag] = value
    return [row for key in sorted(groups) for row in groups[key]], moved


def moved_note(moved: int) -> str:
    return f"{plural(moved, 'point')} with the time of the first point of the same step"


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
    """Gather tagged points into rows; a metric whose name would be read as an axis is under `metric/<name>`."""
    series = list(series_of(points))
    rows: list[Row] = []
    tags: dict[str, None] = {}
    moved = 0
    for one in series:
        records, late = records_of(one.points)
        moved += late
        tags |= dict.fromkeys(column(tag) for record in records for tag in record.values)
        where: dict[str, str | float] = {"source": one.source, "attempt": one.attempt} if len(series) > 1 else {}
        where |= {} if one.rank is None else {"rank": one.rank}
        rows += [Row(where | _axes(r), {column(tag): value for tag, value in r.values.items()}) for r in records]
    return Wide(tuple(rows), tuple(tags), (moved_note(moved),) if moved else ())


def column(tag: str) -> str:
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
