"""One Parquet part of a table, without the columns that need no rows: one value throughout, or another column's values.

A part is of one source, so that its path, and mostly its rank, attempt and class of value, are the same in every row,
and names that no table of names changes are printed twice. What was left out stands in the file's own metadata under
`forensics`, as JSON: `one` (column: value) and `as` (column: the column that it equals).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from forensics.store.schema import TABLES

#: zstd level 1 writes twice as fast as 3 and is 5 % larger on metric rows; reading is the same.
COMPRESSION_LEVEL = 1
_KEY = "forensics"
#: Columns that often say what another one says.
_TWINS: Mapping[str, Mapping[str, str]] = {"metrics": {"raw_name": "name", "gstep": "step", "seq": "byte"}}


def write(table: str, frame: pl.DataFrame, path: Path) -> None:
    """Write rows that have every column of the table."""
    one = {name: frame[name][0] for name in frame.columns if _is_one(frame[name])}
    twins = {a: b for a, b in _TWINS.get(table, {}).items() if a not in one and b not in one and _same(frame, a, b)}
    left_out = [*one, *twins]
    if len(left_out) == frame.width:  # a part keeps a column, by which its rows are counted
        one.pop(left_out[0])
        left_out = left_out[1:]
    frame.drop(left_out).write_parquet(
        path,
        compression="zstd",
        compression_level=COMPRESSION_LEVEL,
        statistics=False,
        metadata={_KEY: orjson.dumps({"one": one, "as": twins}).decode()},
    )


def scan(table: str, path: Path) -> pl.LazyFrame:
    """Give all rows with every column of the table again."""
    told: dict[str, dict[str, Any]] = orjson.loads(pl.read_parquet_metadata(path)[_KEY])
    types = TABLES[table]
    one = [pl.lit(value, dtype=types[name]).alias(name) for name, value in told["one"].items()]
    twins = [pl.col(of).alias(name) for name, of in told["as"].items()]
    return pl.scan_parquet(path, glob=False).with_columns(*one, *twins).select(*types)


def _is_one(values: pl.Series) -> bool:
    """Whether all rows have one value; never so for floats, of which NaN equals nothing, unless all are null."""
    if (nulls := values.null_count()) or not values.len():
        return nulls == values.len()
    if values.dtype.is_float() or values.dtype == pl.Categorical or values[0] != values[-1]:
        return False
    return bool((values == values[0]).all())


def _same(frame: pl.DataFrame, name: str, other: str) -> bool:
    return frame[name].eq_missing(frame[other]).all()
