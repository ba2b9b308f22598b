"""Which metrics a run has: the names, each once, so that rules need not look through all points for them."""

from __future__ import annotations

import polars as pl

from forensics.case.series import keys_of
from forensics.store.run import Run


def metric_names(run: Run) -> pl.DataFrame:
    """Columns source, name, raw_name, a row for each that differs, sorted; remembered with the run."""
    return run.derived(_names)


def _names(run: Run) -> pl.DataFrame:
    columns = ("source", "name", "raw_name")
    return keys_of(run).select(columns).unique().sort(columns)
