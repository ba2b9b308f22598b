"""Profiling windows of one rank over time: the share that each kind of work took in the first and in the last."""

from __future__ import annotations

import polars as pl

from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.gpu import COMMUNICATION, MEMORY, gpu_rows
from forensics.analyses.traces.steps import steps
from forensics.store.run import Run, derived

#: The large kernels of a model, and what moves data; all others are "other kernels".
_NAMED = ("matmul", "attention", "convolution", COMMUNICATION, MEMORY)


def is_other() -> pl.Expr:
    """Whether a row of device work is neither a matrix product, attention, convolution, communication nor a copy."""
    return ~pl.col("label").is_in(_NAMED)


@derived
def window_pairs(run: Run) -> pl.DataFrame:
    """One row a rank that was traced at least twice: its first and its last window, side by side.

    Columns for each window, with the suffix `_first` or `_last`: source, step_lo, step_hi, comm_share (exposed
    communication) and idle_share (both of the traced time), memory_share and other_share (of the summed device time),
    memory_each and other_each (pieces a step), other_median_ns. Windows are in the order of their steps, where a trace
    lacks these in the order of time. Ranks without a number count as one.
    """
    rows = _windows(run)
    rows = rows.sort("first_ns") if rows["step_lo"].null_count() else rows.sort("step_lo", "first_ns")
    where = (pl.col("rank").fill_null(-1)).alias("who")
    first = rows.group_by(where, maintain_order=True).first().drop("rank")
    last = rows.group_by(where, maintain_order=True).last()
    pairs = first.rename({c: f"{c}_first" for c in first.columns if c != "who"}).join(
        last.rename({c: f"{c}_last" for c in last.columns if c not in {"who", "rank"}}), on="who", maintain_order="left"
    )
    return pairs.filter(pl.col("source_first") != pl.col("source_last")).drop("who")


def _windows(run: Run) -> pl.DataFrame:
    work = gpu_rows(run)
    other = is_other()
    memory = pl.col("kind") == MEMORY
    time = pl.col("dur_ns")
    parts = work.group_by("source").agg(
        memory_share=time.filter(memory).sum() / time.sum(),
        other_share=time.filter(other).sum() / time.sum(),
        memory_count=memory.sum(),
        other_count=other.sum(),
        other_median_ns=time.filter(other).median(),
    )
    marks = (
        steps(run).group_by("source").agg(steps=pl.len(), step_lo=pl.col("step").min(), step_hi=pl.col("step").max())
    )
    joined = by_rank(run).join(parts, on="source").join(marks, on="source", how="left")
    return joined.select(
        "source",
        "rank",
        "first_ns",
        "step_lo",
        "step_hi",
        "other_share",
        "memory_share",
        "other_median_ns",
        comm_share=pl.col("exposed_ns") / pl.col("span_ns"),
        idle_share=pl.col("idle_ns") / pl.col("span_ns"),
        memory_each=pl.col("memory_count") / pl.col("steps"),
        other_each=pl.col("other_count") / pl.col("steps"),
    )
