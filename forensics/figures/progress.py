"""Which rank was alive when: records that each rank left over time, the step it had reached, where it was last seen."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.analyses.hang.last_seen import last_seen
from forensics.case.steps import at
from forensics.case.world import world
from forensics.figure import Heat
from forensics.figures._cells import column, of_ranks
from forensics.figures._marks import time_marks
from forensics.figures._ticks import clock, times
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run

_TIMES = {"metrics": "t_ns", "events": "t_ns", "collectives": "created_ns"}
#: Key, title, caption, unit and column of each map.
_MAPS = (
    ("progress", "Ranks over time", "Records that each rank left", "records", "records"),
    ("steps-over-time", "Steps over time", "The step that each rank had reached, of {:,}", "steps", "step"),
)


def _step(table: str) -> pl.Expr:
    """The step of a record; collectives count in their group instead."""
    steps = {"metrics": at(), "events": pl.col("step")}
    return steps.get(table, pl.lit(None, pl.Int64()))


def progress(run: Run, report: Report) -> Iterator[Heat]:
    """Give two maps of ranks over time, for runs of which at least two ranks left records with a time."""
    span = _span(run)
    if span is None:
        return
    low, high, every = span
    counts, first = _counts(run, low, high), clock(low)
    ends: dict[int, int] = dict(counts.group_by("rank").agg(pl.col("last").max()).iter_rows())
    reached = {rank: f"step {one.step}" for rank, one in last_seen(run).items() if one.step is not None}
    for key, title, caption, unit, value in _MAPS:
        own = counts.drop_nulls(value)
        if own["rank"].n_unique() < 2:
            continue
        shown, drawn = of_ranks(report, every, own, value, log=value == "records")
        culprits = f" Culprits: {', '.join(drawn['culprits'])}." if drawn["culprits"] else ""
        yield Heat(
            key=key,
            title=title,
            caption=f"{caption.format(int(drawn['most']))}, from {first} to {clock(high)}.{culprits}",
            x_label=f"time (UTC), {first[:10]}",
            ticks=times(low, high),
            unit=unit,
            told=tuple(
                f"rank {rank}"
                + (f": last record {clock(ends[rank])}" if rank in ends else "")
                + (f", last {reached[rank]}" if rank in reached else "")
                for rank in shown
            ),
            rules=rules_of(report, Shape.HANG),
            ends=tuple(reached.get(rank, "") for rank in shown),
            marks=time_marks(report, (low, high)),
            **drawn,
        )


def _span(run: Run) -> tuple[int, int, list[int]] | None:
    parts = [
        run.scan(table)
        .filter(pl.col("rank").is_not_null() & pl.col(time).is_not_null())
        .group_by("rank")
        .agg(low=pl.col(time).min(), high=pl.col(time).max())
        for table, time in _TIMES.items()
    ]
    rows = pl.concat(parts).collect()
    if rows["rank"].n_unique() < 2:
        return None
    low, high = int(rows["low"].min() or 0), int(rows["high"].max() or 0)  # type: ignore[arg-type] # integer columns
    return (low, high, sorted({*rows["rank"].to_list(), *world(run)})) if high > low else None


def _counts(run: Run, low: int, high: int) -> pl.DataFrame:
    """One row a rank and column: records, the last time, and the step reached where steps were printed."""
    parts = [
        run.scan(table)
        .filter(pl.col("rank").is_not_null() & pl.col(time).is_not_null())
        .with_columns(at=pl.col(time), stood=_step(table))
        .group_by("rank", column("at", low, high).alias("column"))
        .agg(records=pl.len(), last=pl.col("at").max(), step=pl.col("stood").max())
        for table, time in _TIMES.items()
    ]
    whole = (pl.col("records").sum(), pl.col("last").max(), pl.col("step").max())
    return pl.concat(parts).group_by("rank", "column").agg(*whole).sort("rank", "column").collect()


FIGURES = FigureKind(50, progress, frozenset((Shape.HANG, Shape.OOM, Shape.CRASH, Shape.STOPPED)))
