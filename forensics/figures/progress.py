"""Which rank was alive when: records that each rank left over time, the step it had reached, where it was last seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from forensics.analyses.hang.last_seen import Seen, last_seen
from forensics.case.steps import at
from forensics.case.world import world
from forensics.figure import Heat
from forensics.figures._cells import Cells, by_rank, column, empty, left_out, shown_ranks
from forensics.figures._marks import time_marks
from forensics.figures._ticks import clock, times
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run

_TIMES = {"metrics": "t_ns", "events": "t_ns", "collectives": "created_ns"}


def _step(table: str) -> pl.Expr:
    """The step that a record stands at; collectives count in their group instead."""
    steps = {"metrics": at(), "events": pl.col("step")}
    return steps.get(table, pl.lit(None, pl.Int64()))


def progress(run: Run, report: Report) -> Iterator[Heat]:
    """Give two maps of ranks over time, for runs of which at least two ranks left records with a time."""
    span = _span(run)
    if span is None:
        return
    low, high, every = span
    counts = _counts(run, low, high)
    shown = shown_ranks(every, report.verdict.culprits)
    most = int(counts["records"].max() or 1)  # type: ignore[arg-type] # of an integer column
    ends: dict[int, int] = dict(counts.group_by("rank").agg(pl.col("last").max()).iter_rows())
    cells = by_rank(counts, "records", most, log=True)
    seen = last_seen(run)
    common = (report, (low, high), shown, seen, _told(shown, ends, seen), left_out(shown, every))
    yield _heat(("progress", "Ranks over time", "Records that each rank left", "records"), most, cells, *common)
    stepped = counts.filter(pl.col("step").is_not_null())
    if stepped["rank"].n_unique() >= 2:
        top = int(stepped["step"].max() or 0)  # type: ignore[arg-type] # same
        reached = by_rank(stepped, "step", top)
        words = ("steps-over-time", "Steps over time", f"The step that each rank had reached, of {top:,}", "steps")
        yield _heat(words, top, reached, *common)


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


def _heat(  # noqa: PLR0913, PLR0917 - what is drawn, and what both maps have in common
    words: tuple[str, str, str, str],
    most: float,
    cells: Mapping[int, Cells],
    report: Report,
    window: tuple[int, int],
    shown: Sequence[int],
    seen: Mapping[int, Seen],
    told: tuple[str, ...],
    note: str,
) -> Heat:
    key, title, caption, unit = words
    culprits = [r for r in report.verdict.culprits if r in shown]
    return Heat(
        key=key,
        title=title,
        caption=f"{caption}, from {clock(window[0])} to {clock(window[1])}."
        + (f" Culprits: {', '.join(f'rank {r}' for r in culprits)}." if culprits else ""),
        x_label=f"time (UTC), {clock(window[0])[:10]}",
        ticks=times(*window),
        rows=tuple(f"rank {r}" for r in shown),
        cells=tuple(cells.get(rank, empty()) for rank in shown),
        most=float(most),
        unit=unit,
        told=told,
        culprits=tuple(f"rank {r}" for r in culprits),
        rules=rules_of(report, Shape.HANG),
        note=note,
        ends=tuple(
            f"step {one.step}" if (one := seen.get(r)) is not None and one.step is not None else "" for r in shown
        ),
        marks=time_marks(report, window),
    )


def _told(shown: Sequence[int], ends: Mapping[int, int], seen: Mapping[int, Seen]) -> tuple[str, ...]:
    return tuple(
        (f"rank {rank}: last record {clock(ends[rank])}" if rank in ends else f"rank {rank}")
        + (f", last step {one.step}" if (one := seen.get(rank)) is not None and one.step is not None else "")
        for rank in shown
    )


FIGURES = FigureKind(50, progress, frozenset((Shape.HANG, Shape.OOM, Shape.CRASH, Shape.STOPPED)))
