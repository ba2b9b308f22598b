"""Rows of cells of a heat map: counts of what each rank left, in columns of equal width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

COLUMNS, MOST_ROWS = 60, 64
Cells = tuple[float | None, ...]


def column(value: str, low: int, high: int) -> pl.Expr:
    """The column of a value from `low` to `high`."""
    share = (pl.col(value) - low).cast(pl.Float64) * (COLUMNS / (high - low + 1))
    return share.cast(pl.Int32).clip(0, COLUMNS - 1)


def shown_ranks(every: Sequence[int], culprits: Sequence[int]) -> list[int]:
    """The first ranks, with every culprit among them."""
    return sorted({*(r for r in culprits if r in every), *every[:MOST_ROWS]})


def left_out(shown: Sequence[int], every: Sequence[int]) -> str:
    """Say how many ranks are drawn where not all are."""
    return f"{len(shown)} of {len(every)} ranks are drawn" if len(shown) < len(every) else ""


def by_rank(counts: pl.DataFrame, value: str, most: float, *, log: bool = False) -> Mapping[int, Cells]:
    """Shares of `most`, from columns rank, column and `value`; by their logarithm where few and many must be seen."""
    found: dict[int, list[float | None]] = {}
    for rank, at, n in counts.select("rank", "column", value).iter_rows():
        share = float(np.log1p(n) / np.log1p(most)) if log else float(n) / (most or 1.0)
        found.setdefault(rank, [None] * COLUMNS)[at] = min(1.0, max(0.0, share))
    return {rank: tuple(cells) for rank, cells in found.items()}


def empty() -> Cells:
    """A rank that left nothing."""
    return (None,) * COLUMNS
