"""Milliseconds that were printed under the name of seconds: found from the other columns of the same log."""

from __future__ import annotations

from dataclasses import replace
from math import log10
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from forensics.analyses.pace.clocks import Clock

_NEAR = 0.3  # tenfold powers: a factor of two either way still is a thousand


def rescaled(clock: Clock, rows: pl.DataFrame) -> Clock:
    """Give a clock of times per step in seconds: a factor of 1000 against what the log otherwise tells is undone.

    The reference is the running clock, else the timestamps, else tokens per step over tokens per second.
    """
    if clock.form != "time":
        return clock
    own = rows.filter(
        (pl.col("source") == clock.source)
        & (pl.col("attempt") == clock.attempt)
        & pl.col("rank").eq_missing(pl.lit(clock.rank, dtype=pl.Int32))
    )
    known = _from_running_clock(own) or _from_timestamps(clock.rows)
    typical = _median(clock.rows["pace"])
    if known is None or typical is None:
        return clock
    tenfold = log10(typical / known)
    factor = next((f for f in (1e-3, 1e3, 1e-6) if abs(tenfold + log10(f)) < _NEAR), None)
    if factor is None:
        return clock
    unit = {1e-3: "milliseconds", 1e3: "thousands of seconds", 1e-6: "microseconds"}[factor]
    paced = clock.rows.with_columns(pl.col("pace") * factor)
    return replace(clock, rows=paced, quantum=clock.quantum * factor, notes=(*clock.notes, f"printed in {unit}"))


def _from_running_clock(rows: pl.DataFrame) -> float | None:
    clock = rows.filter(pl.col("name") == "train_time_s")
    passed, took = clock["at"].diff(), clock["value"].diff()
    return _median((took / passed).filter((passed > 0) & (took > 0)))


def _from_timestamps(rows: pl.DataFrame) -> float | None:
    passed, took = rows["at"].diff(), rows["t_ns"].diff()
    return _median((took / passed / 1e9).filter((passed > 0) & (took > 0)))


def _median(values: pl.Series) -> float | None:
    found = values.drop_nulls().median()
    return float(found) if isinstance(found, int | float) and found > 0 else None
