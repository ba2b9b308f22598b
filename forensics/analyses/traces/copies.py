"""Copies between host and device in profiler traces, by direction."""

from __future__ import annotations

import polars as pl

from forensics.analyses.traces.gpu import gpu_rows
from forensics.store.run import Run


def copies(run: Run) -> pl.DataFrame:
    """One row a source and direction: source, rank, direction, pageable, count, time_ns, bytes (null: not recorded).

    `direction` is host-to-device, device-to-host, device-to-device, peer-to-peer or other; `pageable` host memory makes
    the copy synchronous.
    """
    return run.derived(_copies)


def _copies(run: Run) -> pl.DataFrame:
    name = pl.col("name").str.to_lowercase()
    direction = (
        pl.when(name.str.contains("htod|hosttodevice"))
        .then(pl.lit("host-to-device"))
        .when(name.str.contains("dtoh|devicetohost"))
        .then(pl.lit("device-to-host"))
        .when(name.str.contains("dtod|devicetodevice"))
        .then(pl.lit("device-to-device"))
        .when(name.str.contains("ptop|peer"))
        .then(pl.lit("peer-to-peer"))
        .otherwise(pl.lit("other"))
    )
    return (
        gpu_rows(run)
        .filter(pl.col("category") == "gpu_memcpy")
        .with_columns(direction=direction, pageable=name.str.contains("pageable"))
        .group_by("source", "direction", "pageable", maintain_order=True)
        .agg(
            pl.col("rank").max(),
            count=pl.len(),
            time_ns=pl.col("dur_ns").sum(),
            bytes=pl.when(pl.col("bytes").is_not_null().any()).then(pl.col("bytes").sum()),
        )
        .sort(["source", "time_ns", "direction"], descending=[False, True, False])
    )
