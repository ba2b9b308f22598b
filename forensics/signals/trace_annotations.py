"""Regions that the program named itself (`record_function`), summed by name."""

from __future__ import annotations

import polars as pl

from forensics.store.run import Run


def regions(run: Run) -> pl.DataFrame:
    """One row a source, side (host or device) and name: source, rank, side, name, count, time_ns; the longest first."""
    return run.derived(_regions)


def _regions(run: Run) -> pl.DataFrame:
    return (
        run.scan("spans")
        .filter(pl.col("category").is_in(["user_annotation", "gpu_user_annotation"]) & pl.col("step").is_null())
        .with_columns(
            side=pl.when(pl.col("category") == "user_annotation").then(pl.lit("host")).otherwise(pl.lit("device"))
        )
        .group_by("source", "side", "name")
        .agg(pl.col("rank").max(), count=pl.len(), time_ns=pl.col("dur_ns").sum())
        .sort(["source", "time_ns", "side", "name"], descending=[False, True, False, False])
        .collect()
    )
