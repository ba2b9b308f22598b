"""The training steps that a profiler trace names (`ProfilerStep#N`), once each, and the compilation within them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from forensics.analyses.traces.intervals import Ints, union
from forensics.knowledge.vocabulary import words_for
from forensics.store.run import Run, derived


@derived
def steps(run: Run) -> pl.DataFrame:
    """One row a step and source: source, rank, seq, step, start_ns, end_ns, thread; sorted by source and start.

    The copy of the mark on the device's time line (`gpu_user_annotation`) is left out, as is a second thread's.
    """
    wanted = pl.col("step").is_not_null() & ~pl.col("category").str.starts_with("gpu")
    marks = spans(run, wanted).select("source", "rank", "seq", "step", "start_ns", "end_ns", "thread").collect()
    return marks.sort("source", "start_ns", "step").unique(["source", "step"], keep="first", maintain_order=True)


def spans(run: Run, wanted: pl.Expr) -> pl.LazyFrame:
    """Give the spans that are wanted, with `end_ns`."""
    return run.scan("spans").filter(wanted).with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"))


def timed_steps(run: Run) -> Iterator[pl.DataFrame]:
    """Give the steps of each rank, in order and under the names of a metric, with `at`, `lo` and `pace` in seconds.

    A rank may leave several traces. Of those that name no rank, files with a step in common are of several ranks.
    """
    marks = steps(run)
    shared = marks.filter(pl.col("rank").is_null())["step"].is_duplicated().any()
    own = pl.coalesce(pl.col("rank").cast(pl.String), "source" if shared else pl.lit(""))
    marks = marks.with_columns(of_=own, value=(pl.col("end_ns") - pl.col("start_ns")) / 1e9)
    for part in marks.partition_by("of_", maintain_order=True):
        ordered = part.sort("step", maintain_order=True).unique("step", keep="first", maintain_order=True)
        rows = ordered.select(
            *("source", "rank", "seq", "step", "value"),
            *(pl.lit(None, pl.Int64).alias(name) for name in ("line", "byte", "gstep", "t_ns")),
            name=pl.lit("trace"),
            raw_name=pl.lit("ProfilerStep"),
            value_class=pl.lit("finite"),
            attempt=pl.lit(0),
            at="step",
            lo=pl.col("step").shift(1),
            pace="value",
        )
        yield rows.filter((pl.col("pace") > 0) & pl.col("lo").is_not_null())


def step_at(marks: pl.DataFrame, source: pl.Series, at_ns: pl.Series) -> pl.Series:
    """Give the step of `marks` that contains each instant, or null outside of every step."""
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


# Compilation (`torch.compile`) that a profiler trace caught, by step.


@derived
def compile_rows(run: Run) -> pl.DataFrame:
    """Every row of the compiler at work, in order: source, rank, seq, name, start_ns, end_ns, dur_ns, step."""
    name, on_host = pl.col("name"), ~pl.col("category").str.starts_with("gpu") & (pl.col("category") != "kernel")
    compiles = name.str.contains(words_for("compiling_event")) & ~name.str.contains(words_for("compiler_at_run_time"))
    rows = spans(run, on_host & compiles).select("source", "rank", "seq", "name", "start_ns", "dur_ns", "end_ns")
    rows = rows.collect().sort("source", "start_ns", "seq")
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
