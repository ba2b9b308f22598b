"""What to advise against fragmentation: only what the run does not do already."""

from __future__ import annotations

import polars as pl

from forensics.store.run import Run


def expandable(run: Run) -> bool | None:
    """Tell whether expandable segments are on by what the run's environment says; None when it does not say."""
    rows = (
        run.scan("facts")
        .filter(pl.col("key").str.contains(r"(?i)(?:CUDA|HIP)_ALLOC_CONF|PYTORCH_ALLOC_CONF|expandable_segments"))
        .select("key", "value")
        .collect()
    )
    said = " ".join(f"{key}={value}" for key, value in rows.iter_rows()).lower().replace('"', "").replace(" ", "")
    if "expandable_segments" not in said:
        return False if rows.height else None
    return "expandable_segments:true" in said or "expandable_segments=true" in said


def advice(run: Run) -> tuple[str, ...]:
    """List the steps against fragmentation."""
    shapes = "use fewer different shapes: pad to multiples, bucket by length"
    if expandable(run):
        return (shapes, "expandable segments are on already; look at a snapshot for what holds the segments")
    return ("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", shapes)
