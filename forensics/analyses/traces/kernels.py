"""Device time summed by kernel and by category of kernel, and work whose launch is not in the trace.

Sums, so work that overlaps counts on every stream.
"""

from __future__ import annotations

import polars as pl

from forensics.analyses.traces.gpu import gpu_rows
from forensics.store.run import Run, derived


@derived
def kernels(run: Run) -> pl.DataFrame:
    """One row a source and kernel name: source, rank, label, kind, name, time_ns, count; the longest first."""
    return (
        gpu_rows(run)
        .lazy()
        .group_by("source", "label", "kind", "name")
        .agg(pl.col("rank").max(), time_ns=pl.col("dur_ns").sum(), count=pl.len())
        .sort(["source", "time_ns", "label", "name"], descending=[False, True, False, False])
        .collect()
    )


def shares(rows: pl.DataFrame, label: str) -> pl.DataFrame:
    """Sum rows of `kernels` by source and the column `label`, the longest first."""
    return (
        rows.group_by("source", label)
        .agg(pl.col("rank").max(), pl.col("time_ns").sum(), pl.col("count").sum())
        .with_columns(share=(pl.col("time_ns") / pl.col("time_ns").sum().over("source")).fill_nan(0.0))
        .sort(["source", "time_ns", label], descending=[False, True, False])
    )


@derived
def unlaunched(run: Run) -> pl.DataFrame:
    """Device work whose launch is not in the trace, the longest in sum first.

    Columns: source, rank, name, kind, before, time_ns, count, first_ns, last_ns. `before` tells work that its stream
    ran ahead of everything launched within the window, so that was launched before the window began; otherwise the
    trace lacks the launch.
    """
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


def short_name(name: str) -> str:
    """A kernel's name without its common prefix: its return type and torch's own namespaces."""
    return name.removeprefix("void ").removeprefix("at::native::").removeprefix("(anonymous namespace)::")
