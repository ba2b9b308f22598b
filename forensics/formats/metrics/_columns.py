"""Plain lines of a delimited text as columns of numbers; lines that need a closer look come out as rows, in order.

A line is read with the others when it has two cells or more, no more than its header, and cannot be a header itself. A
cell that the fast cast refuses is read by `number`, so both ways give the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from forensics.formats.rows.delimited import Row, Stretch
from forensics.formats.rows.json_records import FLOAT_HOLDS, NUMBER_CHARS, dated, number
from forensics.formats.rows.metrics import int64
from forensics.io.columns import as_column

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_NEWLINE, _BLANK = 10, 32
_BLANKS = " \t\r"
#: Bytes that begin like compressed ones (zlib's `x^`) are unpacked by the reader of columns.
_PACKED = ord("x")


class Columns(Struct, frozen=True):
    """Cells by column, empty ones null, with the line (from 1) and the byte at which each row begins."""

    cells: pl.DataFrame
    line: pl.Series
    byte: pl.Series
    padded: bool

    def numbers(self, column: int, unit: str = "") -> pl.Series:
        """Numbers of a column as `number` reads them without the unit behind them, null where it reads none."""
        text = self.text(column)
        if unit:
            text = text.str.strip_suffix(unit).str.strip_chars_end(_BLANKS)
        read = text.cast(pl.Float64, strict=False)
        length = text.str.len_bytes()
        longest = length.max() or 0
        if longest < NUMBER_CHARS and read.null_count() == text.null_count():  # pyright: ignore[reportOperatorIssue] - lengths
            return read
        refused = (read.is_null() & (length > 0)) | (length >= NUMBER_CHARS)
        if not refused.any():
            return read
        odd = text.filter(refused)
        known = {cell: value for cell in odd.unique() if (value := number(cell.strip())) is not None}
        values = [None if (value := known.get(cell)) is None else float(value) for cell in odd]
        return read.scatter(refused.arg_true(), pl.Series(values, dtype=pl.Float64))

    def dates(self, column: int) -> pl.Series:
        """Times of a column as `dated` reads them."""
        return pl.Series([dated(cell.strip()) for cell in self.text(column).fill_null("")], dtype=pl.Int64)

    def whole(self, column: int, numbers: pl.Series) -> pl.Series:
        """Numbers of a column as `int64` reads them: exact beyond those that a float holds."""
        exact = self.text(column).cast(pl.Int64, strict=False)
        if exact.null_count() == numbers.null_count():
            return exact
        odd = exact.is_null() & numbers.is_not_null()
        near = odd & (numbers.abs() < FLOAT_HOLDS)
        exact = exact.scatter(near.arg_true(), numbers.filter(near).cast(pl.Int64, strict=False))
        far = (odd & ~near.fill_null(value=False)).arg_true()
        if len(far):
            cells = (number(cell.strip()) for cell in self.text(column).gather(far))
            exact = exact.scatter(far, pl.Series([int64(cell) for cell in cells], dtype=pl.Int64))
        return exact

    def first_text(self, column: int) -> tuple[int, str] | None:
        """The first cell of a column that is not blank, with its row."""
        text = self.text(column)
        filled = (text.is_not_null() & (text != "")).arg_true()
        return (int(filled[0]), str(text[filled[0]])) if len(filled) else None

    def text(self, column: int) -> pl.Series:
        """Cells of a column without the blanks around them, null where they are empty."""
        text = self.cells[str(column)]
        return text.str.strip_chars(_BLANKS) if self.padded else text


class Shape(NamedTuple):
    """What a line below a header is held against: `first_name` may begin another one, `width` counts the names.

    Fewer lines than `least_lines` are read one by one in less time than columns take to be made.
    """

    delimiter: str
    first_name: str
    width: int
    least_lines: int


class _Cut(NamedTuple):
    """A stretch, its bytes, and where each line begins and ends."""

    stretch: Stretch
    data: npt.NDArray[np.uint8]
    begins: Ints
    ends: Ints

    def lines(self, first: int, last: int) -> Stretch:
        """Lines `first` up to `last`."""
        line, byte, data = self.stretch
        low, high = int(self.begins[first]), int(self.ends[last - 1]) + 1
        return Stretch(line + first, byte + low, data[low:high])


def _cut(stretch: Stretch) -> _Cut:
    data = np.frombuffer(stretch.data, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    return _Cut(stretch, data, np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1]), ends)


def columns_of(lines: Stretch, delimiter: str, width: int) -> Columns:
    """The lines of a stretch that fit a header of so many names, as `fitting` gives them."""
    cells = pl.read_csv(
        lines.data,
        has_header=False,
        separator=delimiter,
        quote_char=None,
        schema={str(column): pl.String for column in range(width)},
        missing_columns="insert",
        truncate_ragged_lines=True,
    )
    begins = _cut(lines).begins
    line, byte = lines.line + np.arange(len(begins)), lines.byte + begins
    padded = any(blank.encode() in lines.data for blank in _BLANKS if blank != delimiter)
    return Columns(cells, as_column(line), as_column(byte), padded)


def fitting(stretch: Stretch, shape: Shape) -> Iterator[Row | Stretch]:
    """The lines of a stretch: many that fit come together, few and those that need a closer look as rows."""
    cut = _cut(stretch)
    first, height = 0, len(cut.ends)
    for odd in [*np.flatnonzero(_closer(cut, shape)).tolist(), height]:
        last = min(odd + 1, height)
        if odd - first >= max(shape.least_lines, 1):
            yield cut.lines(first, odd)
            first = odd
        if first < last:
            yield from cut.lines(first, last).rows(shape.delimiter)
        first = last


def _closer(cut: _Cut, shape: Shape) -> Mask:
    """Lines that need a closer look: blank or of one cell, wider than the header, or perhaps a header again."""
    (_, _, text), data, begins, ends = cut
    mark, name = ord(shape.delimiter), shape.first_name.encode()
    cells = np.diff(np.searchsorted(np.flatnonzero(data == mark), ends), prepend=0) + 1
    closer = (cells == 1) | (cells > shape.width) | (data[begins] == _PACKED)
    if shape.delimiter == "\t":  # a line of nothing but tabs is blank
        closer |= ~np.logical_or.reduceat(data > _BLANK, begins)
    if not name:
        closer |= (data[begins] <= _BLANK) | (data[begins] == ord("#")) | (data[begins] == mark)
    elif name in text:
        again = rb"(?m)^[# \t\r]*" + re.escape(name) + rb"[ \t\r]*(?:" + shape.delimiter.encode() + b"|$)"
        found = [one.start() for one in re.finditer(again, text)]
        closer[np.searchsorted(begins, found, side="right") - 1] = True
    return closer
