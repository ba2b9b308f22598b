"""Rows of a delimited text with their places: quoted cells may hold delimiters and line ends, damage stays local."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from forensics.ingest._rows_of_text import Line, lines_of
from forensics.io.reading import Opened

#: Bounds of one row; a quote that does not close within them is a stray one, and its line is read alone.
MOST_COLUMNS = 10_000
_ROW_LINES = 200
_ROW_BYTES = 1 << 16
_DELIMITERS = (",", "\t", ";")


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `line` (from 1) and `byte` are those of its first line, `ended` is false where the file stops in it."""

    line: int
    byte: int
    size_bytes: int
    cells: list[str]
    ended: bool


def split(text: bytes, delimiter: str) -> list[str]:
    """Cells of one row as written, with the quotes taken off; empty where the quotes make no sense."""
    plain = text.decode("utf-8", "replace").removeprefix("\ufeff").replace("\0", "")
    if '"' not in plain:
        return plain.split(delimiter, MOST_COLUMNS)
    try:
        return next(iter(csv.reader(plain.splitlines(keepends=True), delimiter=delimiter)), list[str]())
    except csv.Error:
        return []


def delimiter_of(header: bytes) -> str:
    """Comma, tab or semicolon: the one that the first line has most of."""
    plain = header.decode("utf-8", "replace")
    return max(_DELIMITERS, key=plain.count)


def first_rows(opened: Opened, count: int, *, head_bytes: int = 65_536) -> tuple[str, list[list[str]]]:
    """The delimiter, and the cells of up to `count` whole lines of the head, blank ones left out."""
    lines = [text.removesuffix(b"\r") for text in opened.text_head(head_bytes).split(b"\n")]
    lines = [text for text in lines if text.strip()][:count]
    delimiter = delimiter_of(lines[0]) if lines else ","
    return delimiter, [split(text, delimiter) for text in lines]


def rows_of(opened: Opened, delimiter: str = ",") -> Iterator[Row]:
    """Every row that is not blank, in order."""
    ahead: deque[Line] = deque()
    rest = lines_of(opened)
    while (line := ahead.popleft() if ahead else next(rest, None)) is not None:
        if not line.text.strip():
            continue
        if line.text.count(b'"') % 2:
            more = _until_closed(line, ahead, rest)
            texts = [line.text, *(ahead.popleft().text for _ in range(more))]
            ended = line.ended
            text = b"\n".join(texts)
        else:
            text, ended = line.text, line.ended
        yield Row(line.number, line.byte, len(text), split(text, delimiter), ended)


def _until_closed(line: Line, ahead: deque[Line], rest: Iterator[Line]) -> int:
    """How many further lines close the quote that `line` leaves open; 0 when none within the bounds does."""
    held = list(ahead)
    size = len(line.text)
    for count, follows in enumerate(chain(held, rest), start=1):
        if count > len(held):
            ahead.append(follows)
        size += len(follows.text)
        if follows.text.count(b'"') % 2:
            return count
        if count >= _ROW_LINES or size > _ROW_BYTES:
            return 0
    return 0


def complaint(row: Row, width: int) -> tuple[str, str] | None:
    """Code and message of what is wrong with a row below a header of `width` names; a short one is no fault."""
    if not row.ended and len(row.cells) < width:
        return "row-cut", "the last row is cut and was not read"
    if len(row.cells) > width:
        return "row-not-read", "a row has more cells than the header"
    return None if row.cells else ("row-not-read", "the quotes of a row do not pair up")
