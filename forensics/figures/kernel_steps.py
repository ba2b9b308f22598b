"""What each step's time on the device was spent on: kernel categories, step by step."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.analyses.traces.gpu import gpu_rows
from forensics.figure import Bar, Bars
from forensics.figures._thin import REST, window, window_note
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run

_MOST_PARTS = 8
_MS = 1e6


def kernel_steps(run: Run, report: Report) -> Iterator[Bars]:
    """Give the bars of the trace with most steps; nothing where no step was marked."""
    if run.scan("spans").head(1).collect().height == 0:
        return
    work = gpu_rows(run).filter(pl.col("step").is_not_null())
    if work.height == 0:
        return
    counts = work.group_by("source").agg(pl.col("rank").max(), steps=pl.col("step").n_unique())
    best = counts.sort(["steps", "rank", "source"], descending=[True, False, False], nulls_last=True).row(0, named=True)
    own = work.filter(pl.col("source") == best["source"])
    yield _bars(own, f"rank {best['rank']}" if best["rank"] is not None else str(best["source"]), report)


def _bars(own: pl.DataFrame, name: str, report: Report) -> Bars:
    totals = own.group_by("label").agg(pl.col("dur_ns").sum()).sort(["dur_ns", "label"], descending=[True, False])
    parts = totals["label"].to_list()
    shown, rest = parts[:_MOST_PARTS], parts[_MOST_PARTS:]
    sums = own.group_by("step", "label").agg(pl.col("dur_ns").sum())
    times: dict[int, dict[str, float]] = {}
    for step, label, dur_ns in sums.iter_rows():
        part = label if label in shown else REST
        mine = times.setdefault(step, {})
        mine[part] = mine.get(part, 0.0) + dur_ns / _MS
    names = (*shown, *((REST,) if rest else ()))
    steps = sorted(times)
    longest = max(steps, key=lambda step: (sum(times[step].values()), -step))
    first, last = window(steps.index(longest), len(steps))
    return Bars(
        key="step-categories",
        title=f"Kernel categories of each step of {name}",
        caption=f"Time on the device by kind of kernel, summed over streams, of the work that each step launched. "
        f"Most is in step {longest} with {sum(times[longest].values()):,.1f} ms; {shown[0]} takes most of all.",
        unit="ms",
        parts=names,
        bars=tuple(Bar(f"step {s}", tuple(times[s].get(p, 0.0) for p in names)) for s in steps[first:last]),
        rules=rules_of(report, Shape.SLOWDOWN),
        note=window_note(last - first, len(steps)),
    )


FIGURES = FigureKind(63, kernel_steps)
