"""Work of the devices in profiler traces: every kernel, copy and set, its kind, and the host call behind it.

A kernel belongs to the step in which the host launched it: the device may run it a step later. A graph launch has
many kernels with its one correlation id. Annotations on the device's time line, waits (`cuda_sync`) and overhead are
no work. A copy that runs as a kernel occupies the device as one: its `kind` is compute though its `label` is memory.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from forensics.analyses.traces.kernel_categories import categorise
from forensics.analyses.traces.steps import spans, step_at, steps
from forensics.formats.trace.calls import QUIET_CALLS
from forensics.knowledge.vocabulary import keys_of
from forensics.store.run import Run, derived

WORK = keys_of("work_of_a_gpu")
COMPUTE, COMMUNICATION, MEMORY = "compute", "communication", "memory"
#: Categories of the calls of a device's runtime or driver.
CALLS = keys_of("call_of_a_runtime")


@derived
def gpu_rows(run: Run) -> pl.DataFrame:
    """Every piece of device work, sorted by source and start.

    Columns: source, rank, device, stream, seq, category (the trace's), name, start_ns, dur_ns, end_ns, label (the
    kernel's category), kind (compute, communication or memory); of the host call that launched it thread and
    launch_ns, null when the trace has none; step, by launch.
    """
    columns = ("source", "rank", "device", "stream", "seq", "category", "name", "start_ns", "dur_ns")
    work = spans(run, pl.col("category").is_in(WORK)).select(*columns, "correlation", "end_ns").collect()
    work = work.sort("source", "start_ns", "seq")
    launched = _with_launch(_labelled(work), host_calls(run))
    return launched.with_columns(step_at(steps(run), launched["source"], launched["launch_ns"]))


def host_calls(run: Run) -> pl.LazyFrame:
    """Calls of the runtime and driver that may give the device work, wait for it or move its memory: rows of spans.

    They are as many as the work of the device, so each question collects the columns that it needs.
    """
    return spans(run, pl.col("category").is_in(CALLS) & ~pl.col("name").is_in(QUIET_CALLS))


def _labelled(work: pl.DataFrame) -> pl.DataFrame:
    names = work.select("name").unique(maintain_order=True)
    names = names.with_columns(label=categorise(names["name"]))
    copy = pl.col("category") != "kernel"
    label = pl.when(copy).then(pl.lit(MEMORY)).otherwise(pl.col("label"))
    kind = pl.when(copy).then(pl.lit(MEMORY)).when(label == COMMUNICATION).then(label).otherwise(pl.lit(COMPUTE))
    return work.join(names, on="name", how="left", maintain_order="left").with_columns(label=label, kind=kind)


def _with_launch(work: pl.DataFrame, host: pl.LazyFrame) -> pl.DataFrame:
    order = ("source", "start_ns", "seq")
    calls = host.select(*order, "thread", "correlation").collect().sort(order)
    index = _launch_index(work, calls)
    launch = calls.select(pl.col("thread").gather(index), launch_ns=pl.col("start_ns").gather(index))
    return work.drop("correlation").hstack(launch)


def _launch_index(work: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Row of `calls` (sorted by source and start) that has each work's correlation, the first of several, or null."""
    found = np.full(work.height, -1, np.int64)
    mine = calls.select("source", "correlation").with_row_index("row").filter(pl.col("correlation") > 0)
    by_source = mine.partition_by("source", as_dict=True)
    asked = work.select("source", "correlation").with_row_index("row").filter(pl.col("correlation") > 0)
    for source, own in asked.partition_by("source", as_dict=True).items():
        if (there := by_source.get(source)) is not None:
            order = np.argsort(there["correlation"].to_numpy(), kind="stable")
            ids, wanted = there["correlation"].to_numpy()[order], own["correlation"].to_numpy()
            at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
            rows = there["row"].to_numpy()[order][at].astype(np.int64)
            found[own["row"].to_numpy()] = np.where(ids[at] == wanted, rows, -1)
    return pl.Series(found).replace(-1, None).cast(pl.UInt32)
