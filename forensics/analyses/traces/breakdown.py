"""Where the time of a device went: busy, idle, compute, communication, memory and their overlap, exact to 1 ns.

Time is measured in unions of intervals over all streams, not in sums: two kernels at once count once. `span_ns` runs
from the start of the first work to the end of the last. Exposed communication is that under which nothing computes.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from forensics.analyses.traces.gpu import COMMUNICATION, COMPUTE, MEMORY, gpu_rows
from forensics.analyses.traces.intervals import Ints, union
from forensics.store.run import Run, derived


@derived
def by_rank(run: Run) -> pl.DataFrame:
    """One row a source, hence a rank and profiling window.

    Columns: source, rank, first_ns, span_ns, busy_ns, idle_ns, compute_ns, communication_ns, memory_ns, overlap_ns
    (communication under computation), exposed_ns (the rest of it), count (pieces of work).
    """
    return breakdown(gpu_rows(run), ["source"])


@derived
def by_step(run: Run) -> pl.DataFrame:
    """The same for each source and step; work launched outside of every step is left out."""
    return breakdown(gpu_rows(run).filter(pl.col("step").is_not_null()), ["source", "step"])


def breakdown(work: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Divide the time of each group of device work; columns as of `by_rank`, with `keys` first."""
    named = work.group_by(keys, maintain_order=True).agg(
        pl.col("rank").max(),
        first_ns=pl.col("start_ns").min(),
        span_ns=pl.col("end_ns").max() - pl.col("start_ns").min(),
        count=pl.len(),
    )
    group = work.join(named.with_row_index("group"), on=keys, how="left", maintain_order="left")["group"]
    groups, kind = named.height, {name: (work["kind"] == name).to_numpy() for name in (COMPUTE, COMMUNICATION, MEMORY)}
    arrays = (group.cast(pl.Int64).to_numpy(), work["start_ns"].to_numpy(), work["end_ns"].to_numpy())

    def time(*kinds: str) -> Ints:
        mask = np.logical_or.reduce([kind[name] for name in kinds])
        return union(*(a if mask.all() else a[mask] for a in arrays)).totals(groups)

    busy, compute, comm = time(COMPUTE, COMMUNICATION, MEMORY), time(COMPUTE), time(COMMUNICATION)
    # what two unions share is what is counted twice in their sum
    overlap = compute + comm - time(COMPUTE, COMMUNICATION)
    columns = {
        "busy_ns": busy,
        "idle_ns": named["span_ns"].to_numpy() - busy,
        "compute_ns": compute,
        "communication_ns": comm,
        "memory_ns": time(MEMORY),
        "overlap_ns": overlap,
        "exposed_ns": comm - overlap,
    }
    return named.with_columns(pl.Series(name, np.asarray(values, np.int64)) for name, values in columns.items())
