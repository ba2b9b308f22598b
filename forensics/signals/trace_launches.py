"""How the host fed the device: delay from launch to start, how many launches waited, and work without a launch."""

from __future__ import annotations

import numpy as np
import polars as pl

from forensics.signals.trace_gpu import gpu_rows
from forensics.store.run import Run


def launch_stats(run: Run) -> pl.DataFrame:
    """One row a source: how kernels were launched.

    Columns: source, rank, kernels, launches (host calls: a graph has one for many), median_kernel_ns, median_delay_ns
    and most_delay_ns (start of the work less start of the call), early (starts before its call: clocks disagree),
    mean_queue (launches waiting, by Little's law: summed delay over the time of the launches) and most_queue.
    """
    return run.derived(_launch_stats)


def unlaunched(run: Run) -> pl.DataFrame:
    """Device work whose launch is not in the trace, the longest in sum first.

    Columns: source, rank, name, kind, before, time_ns, count, first_ns, last_ns. `before` tells work that its stream
    ran ahead of everything launched within the window, so that was launched before the window began; otherwise the
    trace lacks the launch.
    """
    return run.derived(_unlaunched)


def _launch_stats(run: Run) -> pl.DataFrame:
    rows = gpu_rows(run).filter(pl.col("launch_ns").is_not_null())
    delay = pl.col("start_ns") - pl.col("launch_ns")
    waited = delay.clip(lower_bound=0)
    stats = rows.group_by("source", maintain_order=True).agg(
        pl.col("rank").max(),
        kernels=(pl.col("category") == "kernel").sum(),
        launches=pl.struct("thread", "launch_ns").n_unique(),
        median_kernel_ns=pl.col("dur_ns").filter(pl.col("category") == "kernel").median(),
        median_delay_ns=delay.median(),
        most_delay_ns=delay.max(),
        early=(delay < 0).sum(),
        mean_queue=waited.sum() / (pl.col("start_ns").max() - pl.col("launch_ns").min()).clip(lower_bound=1),
    )
    most = {source[0]: _most_queue(own) for source, own in rows.partition_by("source", as_dict=True).items()}
    return stats.with_columns(most_queue=pl.col("source").replace_strict(most, default=0, return_dtype=pl.Int64))


def _most_queue(rows: pl.DataFrame) -> int:
    once = rows.unique(["launch_ns", "thread"], keep="first", maintain_order=True)
    launch, start = once["launch_ns"].to_numpy(), np.maximum(once["start_ns"].to_numpy(), once["launch_ns"].to_numpy())
    at = np.r_[launch, start]
    change = np.r_[np.ones(len(launch), np.int64), -np.ones(len(start), np.int64)]
    return int(np.cumsum(change[np.lexsort((change, at))]).max(initial=0))


def _unlaunched(run: Run) -> pl.DataFrame:
    rows = gpu_rows(run)
    lone = pl.col("launch_ns").is_null()
    first = pl.col("start_ns").filter(~lone).min().over("source", "device", "stream")
    rows = rows.with_columns(before=(pl.col("start_ns") < first).fill_null(value=False)).filter(lone)
    return (
        rows.group_by("source", "name", "kind", "before", maintain_order=True)
        .agg(
            pl.col("rank").max(),
            time_ns=pl.col("dur_ns").sum(),
            count=pl.len(),
            first_ns=pl.col("start_ns").min(),
            last_ns=pl.col("end_ns").max(),
        )
        .sort(["source", "time_ns", "name"], descending=[False, True, False])
    )
