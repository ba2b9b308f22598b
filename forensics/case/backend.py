"""What a run computed on: the kind of device whose signs it left; empty where it left none."""

from __future__ import annotations

import polars as pl

from forensics.case.errors.coded import codes
from forensics.case.series import keys_of
from forensics.case.settings import stated
from forensics.knowledge.backends import Backend, backends
from forensics.patterns import having
from forensics.store.run import Run, derived


@derived
def backend(run: Run) -> str:
    """Give the backend's name as the table of knowledge has it; empty when nothing tells."""
    lines = pl.Series(sorted(codes(run)), dtype=pl.String)
    names, values = keys_of(run)["raw_name"].drop_nulls().unique(), stated(run, "device")["said"].unique()

    def fits(one: Backend) -> bool:
        told = _any(lines, one.lines) or _any(values, one.values)
        return told or bool(one.metrics and having(names, one.metrics))

    return next((one.backend for one in backends() if fits(one)), "")


def _any(said: pl.Series, pattern: str) -> bool:
    return bool(pattern and having(said, f"^(?:{pattern})$"))
