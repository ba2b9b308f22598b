"""The training steps that a profiler trace names (`ProfilerStep#N`), counted once each."""

from __future__ import annotations

import numpy as np
import polars as pl

from forensics.analyses.traces.intervals import Ints
from forensics.store.run import Run, derived


@derived
def steps(run: Run) -> pl.DataFrame:
    """One row a step and source: source, rank, seq, step, start_ns, end_ns, thread; sorted by source and start.

    The copy of the mark on the device's time line (`gpu_user_annotation`) is left out, as is a second thread's.
    """
    marks = (
        run.scan("spans")
        .filter(pl.col("step").is_not_null() & ~pl.col("category").str.starts_with("gpu"))
        .select(
            "source", "rank", "seq", "step", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"), thread="thread"
        )
        .collect()
    )
    return marks.sort("source", "start_ns", "step").unique(["source", "step"], keep="first", maintain_order=True)


def step_at(marks: pl.DataFrame, source: pl.Series, at_ns: pl.Series) -> pl.Series:
    """Give the step of `marks` in which each instant lies, or null outside of every step."""
    out = np.full(len(source), -1, np.int64)
    times = at_ns.fill_null(-1).to_numpy()
    for (name,), own in marks.partition_by("source", as_dict=True, maintain_order=True).items():
        here = np.flatnonzero((source == name).to_numpy())
        out[here] = _of_one(own, times[here])
    return pl.Series("step", out).replace(-1, None)


def _of_one(own: pl.DataFrame, times: Ints) -> Ints:
    index = np.searchsorted(own["start_ns"].to_numpy(), times, side="right") - 1
    inside = (index >= 0) & (times < own["end_ns"].to_numpy()[np.maximum(index, 0)])
    return np.where(inside, own["step"].to_numpy()[np.maximum(index, 0)], -1)
