"""Every table, column and type of the store, as `columns.tsv` lists and explains them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType

import polars as pl

from forensics.io.tables import table_rows

VERSION = 1
_I32 = pl.Int32()


def _tables() -> Mapping[str, Mapping[str, pl.DataType]]:
    rows = groupby(table_rows("forensics.store", "columns.tsv"), key=itemgetter(0))
    return {table: {column: getattr(pl, dtype)() for _, column, dtype, _ in own} for table, own in rows}


TABLES: Mapping[str, Mapping[str, pl.DataType]] = MappingProxyType(_tables())


#: Every class of a value; the last two only its reader can know.
CLASSES = ("finite", "nan", "+inf", "-inf", "null", "null-suspected-nan", "filtered-by-writer")


def value_class(value: pl.Expr) -> pl.Expr:
    """Class of a float column: `finite`, `nan`, `+inf`, `-inf` or `null`.

    An ingester that knows more says `null-suspected-nan` or `filtered-by-writer`.
    """
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
    """Give `frame` exactly the columns of `table`, in order: missing ones null, `value_class` by `value`.

    A rank or an attempt that no 32 bits hold was misread, and is null; a class that is none counts as not told. Raises
    `KeyError` for an unknown table or a column that the table does not have.
    """
    columns = TABLES[table]
    unknown = set(frame.columns) - set(columns)
    if unknown:
        raise KeyError(f"{table} has no column {sorted(unknown)}")
    if table == "metrics" and "value" in frame.columns:
        known_only = pl.col("value_class").cast(pl.Enum(CLASSES), strict=False).cast(pl.String)
        told = [known_only] if "value_class" in frame.columns else []
        frame = frame.with_columns(value_class=pl.coalesce(*told, value_class(pl.col("value").cast(pl.Float64))))
    known = set(frame.columns)
    return frame.select(
        (pl.col(name).cast(dtype, strict=dtype != _I32) if name in known else pl.lit(None, dtype=dtype)).alias(name)
        for name, dtype in columns.items()
    )
