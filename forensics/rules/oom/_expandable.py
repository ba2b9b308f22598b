"""Whether the allocator of a run uses expandable segments."""

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
