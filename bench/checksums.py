"""What a reader read, in three numbers a metric, so that two readers are held to each other by value."""

from __future__ import annotations

import numpy as np
import polars as pl

Sums = dict[str, list[int]]


def of(rows: pl.DataFrame) -> Sums:
    """Number of points, sum of the steps and sum of the bits of the values (NaN as one) of each `raw_name`."""
    held = rows.with_columns(pl.col("value").fill_nan(float("nan")))
    sums: Sums = {}
    for (name,), own in held.partition_by("raw_name", as_dict=True).items():
        bits = np.ascontiguousarray(own["value"].to_numpy()).view(np.uint64)
        sums[str(name)] = [own.height, int(own["step"].sum()), int(bits.sum(dtype=np.uint64))]
    return sums


def joined(parts: list[Sums]) -> Sums:
    """Sums of several files."""
    out: Sums = {}
    for part in parts:
        for name, sums in part.items():
            before = out.get(name, [0, 0, 0])
            out[name] = [before[0] + sums[0], before[1] + sums[1], (before[2] + sums[2]) % (1 << 64)]
    return out


def differences(one: Sums, other: Sums) -> list[str]:
    """Metrics of which two readers read different points."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
