"""Points gathered into records: one row per step of a series, as tables and W&B want them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl
from msgspec import Struct, field

from forensics.report.phrases import plural


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
    for seq, step, epoch, t_ns, tag, value in _rows(points):
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


def tags_of(records: Iterable[Record]) -> list[str]:
    """Every tag, in the order of its first point."""
    return list(dict.fromkeys(tag for record in records for tag in record.values))


def _rows(points: pl.DataFrame) -> Iterator[tuple[int, int | None, float | None, int | None, str, float | None]]:
    yield from points.select("seq", "step", "epoch", "t_ns", "tag", "value").iter_rows()


def moved_note(moved: int) -> str:
    """Say what one row per step costs."""
    return f"{plural(moved, 'point')} with the time of the first point of the same step"
