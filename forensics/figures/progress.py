"""Which rank was alive when: records that each rank left, over time, and where each was last seen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from forensics.figure import Heat
from forensics.figures._when import clock
from forensics.model import Report
from forensics.signals.hang_last_seen import Seen, last_seen
from forensics.store.run import Run

_COLUMNS, _MOST_ROWS = 60, 64
_TIMES = {"metrics": "t_ns", "events": "t_ns", "collectives": "created_ns"}


def progress(run: Run, report: Report) -> Iterator[Heat]:
    """Give one map of ranks over time, for runs of which at least two ranks left records with a time."""
    rows = pl.concat(
        run.scan(table).select("rank", pl.col(time).alias("t_ns")).drop_nulls() for table, time in _TIMES.items()
    ).collect()
    if rows["rank"].n_unique() < 2:
        return
    low, high = int(rows["t_ns"].min() or 0), int(rows["t_ns"].max() or 0)  # type: ignore[arg-type] # of an integer column
    if high <= low:
        return
    column = ((pl.col("t_ns") - low) * (_COLUMNS / (high - low + 1))).cast(pl.Int32)
    counts = rows.group_by("rank", column.alias("column")).len()
    every = sorted(rows["rank"].unique().to_list())
    culprits = [r for r in report.verdict.culprits if r in every]
    shown = sorted({*culprits, *every[:_MOST_ROWS]})[: _MOST_ROWS + len(culprits)]
    most = int(counts["len"].max() or 1)  # type: ignore[arg-type] # same
    seen = last_seen(run)
    yield Heat(
        key="progress",
        title="Ranks over time",
        caption=f"Records that each rank left, from {clock(low)} to {clock(high)}."
        + (f" Culprits: {', '.join(f'rank {r}' for r in culprits)}." if culprits else ""),
        x_label="time (UTC)",
        edges=(clock(low), clock(high)),
        rows=tuple(f"rank {r}" for r in shown),
        cells=tuple(_cells(counts, rank, most) for rank in shown),
        most=float(most),
        unit="records",
        told=tuple(_told(rank, seen.get(rank), rows) for rank in shown),
        culprits=tuple(f"rank {r}" for r in culprits),
        rules=tuple(sorted({f.rule for f in report.findings if f.shape.value == "hang"})),
        note=f"{len(shown)} of {len(every)} ranks are drawn" if len(shown) < len(every) else "",
    )


def _cells(counts: pl.DataFrame, rank: int, most: int) -> tuple[float | None, ...]:
    own = dict(counts.filter(pl.col("rank") == rank).select("column", "len").iter_rows())
    # few and many records must both be seen, so the shade follows the logarithm
    return tuple(float(np.log1p(own[c]) / np.log1p(most)) if c in own else None for c in range(_COLUMNS))


def _told(rank: int, seen: Seen | None, rows: pl.DataFrame) -> str:
    last = rows.filter(pl.col("rank") == rank)["t_ns"].max()
    said = f"rank {rank}: last record {clock(int(last))}" if isinstance(last, int) else f"rank {rank}"
    return said + (f", last step {seen.step}" if seen is not None and seen.step is not None else "")
