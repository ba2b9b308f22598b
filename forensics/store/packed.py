"""Tables of millions of rows, as memory holds them: texts as numbers of a dictionary, integers as short as they fit.

A metric row takes 136 bytes with the types of the schema, 64 of them for four texts that repeat, and 35 to 55 packed.
Nobody outside sees a packed frame by its types: `unpacked` gives the columns those of the schema, of the rows and
columns that a query asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

import polars as pl

from forensics.store.schema import TABLES

#: Tables that are packed, and their columns of texts that repeat.
PACKED: Mapping[str, tuple[str, ...]] = MappingProxyType({"metrics": ("source", "name", "raw_name", "value_class")})
#: Fewer rows are packed together with others: packing costs a millisecond whatever it holds.
FEWEST_ROWS = 1_000
#: So many rows are unpacked at once where a table comes from elsewhere.
_PIECE_ROWS = 250_000
_TEXT = pl.Categorical()


def pack(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Give the same rows in fewer bytes; a table that is not packed stays as it is."""
    texts = PACKED.get(table)
    if texts is None or is_packed(table, frame):
        return frame
    return pl.DataFrame([_short(column, text=column.name in texts) for column in frame])


def is_packed(table: str, frame: pl.DataFrame) -> bool:
    """Whether the rows are packed already."""
    texts = PACKED.get(table, ())
    return any(frame.schema[name] != pl.String for name in texts)


def unpacked(table: str, frame: pl.DataFrame | pl.LazyFrame) -> pl.LazyFrame:
    """Give rows the types of the schema, lazily: a column that nobody asks for is not made."""
    columns = TABLES[table]
    return frame.lazy().select(pl.col(name).cast(dtype) for name, dtype in columns.items())


def stacked(table: str, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Join frames, packed where the table is; packed ones are emptied, so that never all rows stand there twice."""
    if table not in PACKED:
        return pl.concat(frames, rechunk=True)
    parts: list[pl.DataFrame] = []
    for are_packed, group in groupby(frames, lambda frame: is_packed(table, frame)):
        many = list(group)
        parts += many if are_packed else [pack(table, pl.concat(many))]
    if len(parts) == 1:
        return parts[0]
    types = pl.concat([part.clear() for part in parts], how="vertical_relaxed").schema
    columns: list[pl.Series] = []
    for name, dtype in types.items():
        columns.append(pl.concat([part.drop_in_place(name).cast(dtype) for part in parts], rechunk=True))
    return pl.DataFrame(columns)


def packed_from(table: str, rows: pl.LazyFrame) -> pl.DataFrame:
    """Pack a table that is held elsewhere, some rows at a time."""
    height = int(rows.select(pl.len()).collect().item())
    pieces = (rows.slice(first, _PIECE_ROWS).collect() for first in range(0, max(height, 1), _PIECE_ROWS))
    return stacked(table, [pack(table, piece) for piece in pieces])


def _short(column: pl.Series, *, text: bool) -> pl.Series:
    if column.null_count() == len(column):
        return pl.Series(column.name, [None], dtype=pl.Null).new_from_index(0, len(column))
    if text:
        first = column[0]
        if not column.null_count() and (column == first).all():  # the file, and mostly the class of values
            return pl.Series(column.name, [first], dtype=_TEXT).new_from_index(0, len(column))
        return column.cast(_TEXT)
    return column.shrink_dtype() if column.dtype.is_integer() else column.rechunk()
