"""Rows of cells of a heat map: counts of what each rank left, in columns of equal width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from forensics.model import Report

COLUMNS, MOST_ROWS = 60, 64


def column(value: str, low: int, high: int) -> pl.Expr:
    """The column of a value from `low` to `high`."""
    share = (pl.col(value) - low).cast(pl.Float64) * (COLUMNS / (high - low + 1))
    return share.cast(pl.Int32).clip(0, COLUMNS - 1)


def of_ranks(
    report: Report, every: Sequence[int], counts: pl.DataFrame, value: str, *, log: bool = False
) -> tuple[list[int], dict[str, Any]]:
    """The ranks that are drawn, every culprit among them, and what a heat map holds of them.

    `counts` has the columns rank, column and `value`, shares of which are by their logarithm where few and many must be
    seen.
    """
    culprits = [rank for rank in report.verdict.culprits if rank in every]
    shown = sorted({*culprits, *every[:MOST_ROWS]})
    most = float(counts[value].max() or 0)  # type: ignore[arg-type] # of a column of numbers
    cells: dict[int, list[float | None]] = {rank: [None] * COLUMNS for rank in shown}
    for rank, at, n in counts.filter(pl.col("rank").is_in(shown)).select("rank", "column", value).iter_rows():
        cells[rank][at] = min(1.0, max(0.0, float(np.log1p(n) / np.log1p(most)) if log else float(n) / (most or 1.0)))
    return shown, {
        "rows": tuple(f"rank {rank}" for rank in shown),
        "cells": tuple(tuple(cells[rank]) for rank in shown),
        "most": most,
        "culprits": tuple(f"rank {rank}" for rank in culprits),
        "note": f"{len(shown)} of {len(every)} ranks are drawn" if len(shown) < len(every) else "",
    }
