"""What a run computed on: the kind of device whose signs it left; empty where it left none."""

from __future__ import annotations

import polars as pl

from forensics.case.series import keys_of
from forensics.case.settings import stated
from forensics.knowledge.backends import Backend, backends
from forensics.patterns import having
from forensics.store.run import Run, derived


@derived
def backend(run: Run) -> str:
    """Give the backend's name as the table of knowledge has it; empty when nothing tells."""
    lines, names, values = _lines(run), _metrics(run), _values(run)
    fits = (b.backend for b in backends() if _any(lines, b.lines) or _is(b, names, values))
    return next(fits, "")


def _is(one: Backend, names: pl.Series, values: pl.Series) -> bool:
    return _any(values, one.values) or bool(one.metrics and having(names, one.metrics))


def _any(said: pl.Series, pattern: str) -> bool:
    return bool(pattern and having(said, f"^(?:{pattern})$"))


def _lines(run: Run) -> pl.Series:
    return run.scan("events").select(pl.col("code").drop_nulls().unique()).collect().to_series()


def _metrics(run: Run) -> pl.Series:
    return keys_of(run)["raw_name"].drop_nulls().unique()


def _values(run: Run) -> pl.Series:
    return stated(run, "device")["said"].unique(maintain_order=True)
