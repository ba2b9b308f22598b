"""Rank by rank: the collectives of the flight recorder, or communication on the device, over time; what never ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from forensics.analyses.hang.collectives import Recorded, recorded
from forensics.analyses.traces.gpu import COMMUNICATION, gpu_rows
from forensics.case.world import world
from forensics.figure import Heat
from forensics.figures._cells import column, of_ranks
from forensics.figures._marks import time_marks
from forensics.figures._ticks import clock, rounds, times
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run

_MS = 1e6
_FLAG = "did not end"


def collectives(run: Run, report: Report) -> Iterator[Heat]:
    """Give a map where at least two ranks took part."""
    found = recorded(run)
    if found.rows.height and len(found.ranks) >= 2:
        yield _recorded(run, report, found)
        return
    if run.scan("spans").head(1).collect().height == 0:
        return
    rows = gpu_rows(run).filter((pl.col("kind") == COMMUNICATION) & pl.col("rank").is_not_null())
    if rows["rank"].n_unique() >= 2:
        yield from _traced(report, rows)


def _recorded(run: Run, report: Report, found: Recorded) -> Heat:
    """Over the time of their start where every rank printed one, else over their number in the group."""
    timed = found.rows["created_ns"].null_count() == 0
    axis = "created_ns" if timed else "seq"
    low, high = int(found.rows[axis].min() or 0), int(found.rows[axis].max() or 0)  # type: ignore[arg-type] # integers
    cells = (
        found.rows.group_by("rank", column(axis, low, high).alias("column"))
        .agg(started=pl.len(), open=pl.col("pending").sum())
        .sort("rank", "column")
    )
    every = sorted({*found.ranks, *world(run)})
    shown, drawn = of_ranks(report, every, cells, "started", log=True)
    row_of = {rank: n for n, rank in enumerate(shown)}
    flagged = cells.filter((pl.col("open") > 0) & pl.col("rank").is_in(shown)).select("rank", "column")
    edges = (clock(low), clock(high)) if timed else (f"number {low}", f"number {high}")
    numbers = tuple((float(v - low) / (high - low or 1), f"{v:,.0f}") for v in rounds(low, high, whole=True))
    return Heat(
        key="collectives",
        title="Collectives by rank",
        caption=_caption(found, every, edges),
        x_label=f"time (UTC), {edges[0][:10]}" if timed else "number in the group",
        ticks=times(low, high) if timed else tuple(one for one in numbers if 0 <= one[0] <= 1),
        unit="collectives",
        told=tuple(_told(found, rank) for rank in shown),
        rules=rules_of(report, Shape.HANG),
        flagged=tuple((row_of[rank], at) for rank, at in flagged.iter_rows()),
        flag=_FLAG,
        marks=time_marks(report, (low, high)) if timed else (),
        **drawn,
    )


def _caption(found: Recorded, every: Sequence[int], edges: tuple[str, str]) -> str:
    waiting = sorted(rank for rank, entries in found.pending.items() if entries)
    lost = [rank for rank in every if rank not in found.ranks]
    said = f"Collectives that each rank entered, from {edges[0]} to {edges[1]}"
    said += f"; did not end: some of {_listed(waiting)}." if waiting else "; all of them ended."
    return said + (f" No record was left by {_listed(lost)}." if lost else "")


def _told(found: Recorded, rank: int) -> str:
    if rank not in found.ranks:
        return f"rank {rank}: left no record"
    own = found.rows.filter(pl.col("rank") == rank)
    said = f"rank {rank}: {own.height:,} recorded"
    ended = own.filter(~pl.col("pending"))
    if ended.height:
        last = ended.sort("seq", maintain_order=True).row(-1, named=True)
        said += f", last ended {last['op'] or 'an operation'} {last['seq']} of group {last['group']}"
    entries = found.pending.get(rank, ())
    return said + (f"; did not end: {entries[0].words}" if entries else "")


def _traced(report: Report, rows: pl.DataFrame) -> Iterator[Heat]:
    windows = rows.group_by("rank").agg(low=pl.col("start_ns").min(), high=pl.col("end_ns").max())
    if int(windows["low"].max() or 0) >= int(windows["high"].min() or 0):  # type: ignore[arg-type] # integers
        return  # the traces are of different times, so their ranks cannot be laid beside each other
    low, high = int(windows["low"].min() or 0), int(windows["high"].max() or 0)  # type: ignore[arg-type] # same
    sums = (
        rows.group_by("rank", column("start_ns", low, high).alias("column"))
        .agg(ms=pl.col("dur_ns").sum() / _MS)
        .sort("rank", "column")
    )
    totals: dict[int, tuple[float, int]] = {
        rank: (ms, n) for rank, ms, n in rows.group_by("rank").agg(pl.col("dur_ns").sum() / _MS, n=pl.len()).iter_rows()
    }
    shown, drawn = of_ranks(report, sorted(totals), sums, "ms")
    seconds = (high - low) / 1e9
    yield Heat(
        key="communication",
        title="Communication by rank",
        caption=f"Time of communication on the device by when it began, over {seconds:,.3g} s of traces.",
        x_label="s since the first",
        ticks=tuple((v / seconds, f"{v:g}") for v in rounds(0.0, seconds) if v <= seconds),
        unit="ms of communication",
        told=tuple(f"rank {r}: {totals[r][0]:,.4g} ms in {totals[r][1]:,} kernels" for r in shown),
        rules=rules_of(report, Shape.SLOWDOWN),
        **drawn,
    )


def _listed(ranks: Sequence[int]) -> str:
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(str(r) for r in ranks[:8])}{more}"


FIGURES = FigureKind(45, collectives, frozenset((Shape.HANG,)))
