"""Losses that are parts of the objective, by what their names mean."""

from __future__ import annotations

import polars as pl

from forensics.case.joined.stores import counted
from forensics.case.series import chosen, index_of
from forensics.case.steps import SERIES
from forensics.store.run import Run


def parts_of(run: Run, means: pl.Expr, records: int) -> list[pl.DataFrame]:
    """Give the finite losses of a meaning with `records` or more, of each source, attempt, rank and name by itself."""
    if not chosen(index_of(run), means).any():
        return []
    rows = counted(run, means).filter(pl.col("value_class") == "finite")
    found = rows.with_columns(at=pl.coalesce("gstep", "step")).sort("source", "seq").collect()
    return [one for one in found.partition_by(*SERIES, "name", maintain_order=True) if one.height >= records]
