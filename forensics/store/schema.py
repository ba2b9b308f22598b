"""Every table, column, dtype and unit of the store, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

VERSION = 1

_STR, _I64, _I32, _F64 = pl.String(), pl.Int64(), pl.Int32(), pl.Float64()

TABLES: Mapping[str, Mapping[str, pl.DataType]] = MappingProxyType(
    {
        "sources": {
            "source": _STR,
            "path": _STR,
            "format": _STR,
            "ingester": _STR,
            "version": _I32,
            "size": _I64,
            "read": _I64,
            "records": _I64,
            "status": _STR,
            "reason": _STR,
            "sha256": _STR,
            "mtime_ns": _I64,
            "rank": _I32,
            "attempt": _I32,
        },
        "issues": {"source": _STR, "byte": _I64, "line": _I64, "code": _STR, "message": _STR, "count": _I64},
        # text: the line as printed (ANSI removed, cut to limits.quote_chars); attrs: a JSON object of strings
        "events": {
            "source": _STR,
            "seq": _I64,
            "line": _I64,
            "byte": _I64,
            "t_ns": _I64,
            "rank": _I32,
            "step": _I64,
            "level": _STR,
            "code": _STR,
            "text": _STR,
            "attrs": _STR,
        },
        # seq: order of the record in its source (equal for all metrics of one record); value keeps NaN and ±inf
        "metrics": {
            "source": _STR,
            "attempt": _I32,
            "rank": _I32,
            "seq": _I64,
            "line": _I64,
            "byte": _I64,
            "step": _I64,
            "gstep": _I64,
            "epoch": _F64,
            "t_ns": _I64,
            "name": _STR,
            "raw_name": _STR,
            "value": _F64,
            "value_class": _STR,
        },
        "spans": {
            "source": _STR,
            "rank": _I32,
            "step": _I64,
            "stream": _STR,
            "category": _STR,
            "name": _STR,
            "start_ns": _I64,
            "dur_ns": _I64,
            "correlation": _I64,
            "attrs": _STR,
        },
        # key: dotted path; value: JSON text; family: config, env, host, exit, versions, progress
        "facts": {"source": _STR, "line": _I64, "key": _STR, "value": _STR, "family": _STR},
        "evals": {
            "source": _STR,
            "task": _STR,
            "metric": _STR,
            "value": _F64,
            "stderr": _F64,
            "n": _I64,
            "fewshot": _I64,
            "settings": _STR,
        },
        # kind: saved, committed, resumed, removed (log) or directory (disk); complete: null when it cannot be known
        "checkpoints": {
            "source": _STR,
            "seq": _I64,
            "line": _I64,
            "step": _I64,
            "path": _STR,
            "t_ns": _I64,
            "kind": _STR,
            "complete": pl.Boolean(),
            "attempt": _I32,
        },
    }
)

VALUE_CLASSES = ("finite", "nan", "+inf", "-inf", "null", "null-suspected-nan", "filtered-by-writer")


def value_class(value: pl.Expr) -> pl.Expr:
    """Class of a float column (`finite`, `nan`, `+inf`, `-inf`, `null`), as in `VALUE_CLASSES`."""
    return (
        pl.when(value.is_null())
        .then(pl.lit("null"))
        .when(value.is_nan())
        .then(pl.lit("nan"))
        .when(value.is_infinite() & (value > 0))
        .then(pl.lit("+inf"))
        .when(value.is_infinite())
        .then(pl.lit("-inf"))
        .otherwise(pl.lit("finite"))
    )


def conform(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Give `frame` exactly the columns of `table`, in order: missing ones null, `value_class` derived from `value`.

    A rank or an attempt that no 32 bits hold was misread, and is null.

    Raises:
        KeyError: for an unknown table or a column that the table does not have.
    """
    columns = TABLES[table]
    unknown = set(frame.columns) - set(columns)
    if unknown:
        msg = f"{table} has no column {sorted(unknown)}"
        raise KeyError(msg)
    if table == "metrics" and "value_class" not in frame.columns:
        frame = frame.with_columns(value_class=value_class(pl.col("value").cast(pl.Float64)))
    known = set(frame.columns)
    return frame.select(
        (pl.col(name).cast(dtype, strict=dtype != _I32) if name in known else pl.lit(None, dtype=dtype)).alias(name)
        for name, dtype in columns.items()
    )
