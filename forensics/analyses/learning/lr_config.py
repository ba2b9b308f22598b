"""Settings of the learning rate, the vocabulary and the kind of training: one value for each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.case.settings import NOTHING, OFF, stated
from forensics.knowledge.vocabulary import keys_of
from forensics.store.run import Run

#: Values that say that all weights are trained.


class Said(Struct, frozen=True):
    """One value of the configuration, and the fact row that says it; `number` is None where it is no number."""

    text: str
    number: float | None
    row: Mapping[str, Any]


def configured(run: Run, what: str) -> Said | None:
    """Give the value of a setting; None when no file or several different values say it."""
    rows = _stated(run, what)
    if rows.is_empty():
        return None
    same = rows["number"] if rows["number"].null_count() == 0 else rows["value"]
    return _first(rows) if same.n_unique() == 1 else None


def _stated(run: Run, what: str) -> pl.DataFrame:
    every = stated(run, what)
    if every.is_empty():  # most runs state few settings, and a query costs whatever it holds
        return every
    rows = every.filter(~pl.col("said").is_in(NOTHING))
    return rows.with_columns(number=pl.col("said").cast(pl.Float64, strict=False))


def _first(rows: pl.DataFrame) -> Said:
    first = rows.row(0, named=True)
    return Said(str(first["value"]).strip().strip("\"'"), first["number"], first)


def number_of(run: Run, what: str) -> float | None:
    """Give the same as a number; None when it is none or not positive."""
    said = configured(run, what)
    return said.number if said is not None and said.number is not None and said.number > 0 else None


def adapter_of(run: Run) -> Said | None:
    """Give the setting of an adapter (LoRA and its kind) as the only trained part; None without one, or when denied.

    Several keys say so in their own ways: a kind, a rank, a switch.
    """
    rows = _stated(run, "adapter")
    is_denied = rows["said"].is_in([*keys_of("value_of_no_adapter"), *OFF]).any()
    return None if rows.is_empty() or is_denied else _first(rows)
