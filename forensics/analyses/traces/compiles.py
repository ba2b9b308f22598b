"""Compilation (`torch.compile`) that a profiler trace caught, by step."""

from __future__ import annotations

import polars as pl

from forensics.analyses.traces.intervals import union
from forensics.analyses.traces.steps import step_at, steps
from forensics.knowledge.vocabulary import words_for
from forensics.store.run import Run, derived


@derived
def compile_rows(run: Run) -> pl.DataFrame:
    """Every row of the compiler at work, in order: source, rank, seq, name, start_ns, end_ns, dur_ns, step."""
    name = pl.col("name")
    rows = (
        run.scan("spans")
        .filter(~pl.col("category").str.starts_with("gpu") & (pl.col("category") != "kernel"))
        .filter(name.str.contains(words_for("compiling_event")) & ~name.str.contains(words_for("compiler_at_run_time")))
        .select("source", "rank", "seq", "name", "start_ns", "dur_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .collect()
        .sort("source", "start_ns", "seq")
    )
    return rows.with_columns(step_at(steps(run), rows["source"], rows["start_ns"]))


def compile_share(run: Run) -> pl.DataFrame:
    """One row a source that compiles within steps: source, rank, count, steps, time_ns (union), share (of steps)."""
    rows = compile_rows(run).drop_nulls("step")
    named = rows.group_by("source", maintain_order=True).agg(
        pl.col("rank").max(), count=pl.len(), steps=pl.col("step").n_unique()
    )
    group = rows.join(named.with_row_index("group"), on="source", how="left", maintain_order="left")["group"]
    found = union(group.cast(pl.Int64).to_numpy(), rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())
    whole = steps(run).group_by("source").agg(steps_ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    timed = named.with_columns(time_ns=pl.Series(found.totals(named.height), dtype=pl.Int64))
    joined = timed.join(whole, on="source", how="left", maintain_order="left")
    return joined.with_columns(share=pl.col("time_ns") / pl.col("steps_ns")).drop("steps_ns")
