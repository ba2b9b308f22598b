"""Rows of a delimited text with their places: quoted cells may hold delimiters and line ends, damage stays local."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import NamedTuple

from forensics.ingest._out import Out
from forensics.ingest._rows_of_text import Line, lines_of
from forensics.io.limits import DEFAULT
from forensics.io.reading import Opened

#: Bounds of one row; a quote that does not close within them is a letter, and its line is a row.
MOST_COLUMNS = 10_000
_ROW_LINES = 200
_ROW_BYTES = 1 << 16
#: Bytes that may be looked at behind open quotes, for each byte of the file: more only where most quotes never close.
_LOOKS = 4
_DELIMITERS = (",", "\t", ";")
_HEAD_BYTES = 1 << 16


class Row(NamedTuple):
    """One row; `line` (from 1) and `byte` are those of its first line, `ended` is false where the file stops in it."""

    line: int
    byte: int
    size_bytes: int
    cells: list[str]
    ended: bool


@dataclass(slots=True)
class _Lines:
    """Lines of a source; those that were looked at and are not taken yet are `ahead`."""

    rest: Iterator[Line]
    ahead: deque[Line] = field(default_factory=deque[Line])
    looked_bytes: int = 0

    def following(self, line: Line) -> Iterator[Line]:
        """Look at the lines behind the one taken last, as far as the file up to it has paid for."""
        held = list(islice(self.ahead, _ROW_LINES))
        for count, follows in enumerate(chain(held, self.rest)):
            if count >= len(held):
                self.ahead.append(follows)
            self.looked_bytes += len(follows.text) + 1
            if self.looked_bytes > _LOOKS * (line.byte + _ROW_BYTES):
                return
            yield follows


@dataclass(slots=True)
class _Feed:
    """The line of a quote and those behind it, as the parser asks for them: it does while a quote is open."""

    first: Line
    lines: _Lines
    taken: list[Line] = field(default_factory=list[Line])
    closed: bool = True

    def __iter__(self) -> Iterator[str]:
        self.taken = [self.first]
        yield plain(self.first.text) + "\n"
        size_bytes = len(self.first.text)
        for line in self.lines.following(self.first):
            size_bytes += len(line.text) + 1
            if len(self.taken) > _ROW_LINES or size_bytes > _ROW_BYTES:
                break
            self.taken.append(line)
            yield plain(line.text) + "\n"
        self.closed = False


def plain(text: bytes) -> str:
    """A line as text, without what only marks its encoding."""
    return text.decode("utf-8", "replace").removeprefix("\ufeff").replace("\0", "")


def delimiter_of(header: bytes) -> str:
    """Comma, tab or semicolon: the one that the first line has most of."""
    text = plain(header)
    return max(_DELIMITERS, key=text.count)


def first_rows(opened: Opened, count: int) -> tuple[str, list[list[str]]]:
    """The delimiter, and the cells of up to `count` rows of the head, blank ones left out."""
    head = opened.text_head(_HEAD_BYTES)
    if head.count(b"\n") < 2:
        head = opened.text_head(DEFAULT.line_bytes)
    lines = [Line(number, 0, text.removesuffix(b"\r"), ended=True) for number, text in enumerate(head.split(b"\n"), 1)]
    delimiter = next((delimiter_of(line.text) for line in lines if line.text.strip()), ",")
    return delimiter, [row.cells for row in islice(_rows(_Lines(iter(lines)), delimiter, None), count)]


def rows_of(opened: Opened, delimiter: str = ",", out: Out | None = None) -> Iterator[Row]:
    """Every row that is not blank, in order; a quote that does not close is stated to `out`."""
    yield from _rows(_Lines(lines_of(opened)), delimiter, out)


def _rows(lines: _Lines, delimiter: str, out: Out | None) -> Iterator[Row]:
    ahead = lines.ahead
    while (line := ahead.popleft() if ahead else next(lines.rest, None)) is not None:
        if b'"' in line.text:
            yield _quoted(line, lines, delimiter, out)
        elif line.text.strip():
            cells = plain(line.text).split(delimiter, MOST_COLUMNS)
            yield Row(line.number, line.byte, len(line.text), cells, line.ended)


def _quoted(line: Line, lines: _Lines, delimiter: str, out: Out | None) -> Row:
    """A row that begins with a line with quotes; no cells where they make no sense."""
    feed = _Feed(line, lines)
    try:
        cells = next(csv.reader(feed, delimiter=delimiter), list[str]())
        if not feed.closed:
            if out is not None:
                message = f"a quote does not close within {_ROW_LINES} lines or {_ROW_BYTES} bytes: taken as a letter"
                out.issue("quote-open", message, byte=line.byte, line=line.number)
            feed.taken = [line]
            *whole, last = next(csv.reader([plain(line.text)], delimiter=delimiter), [""])
            cells = [*whole, *last.split(delimiter)]
    except csv.Error:
        feed.taken, cells = [line], []
    for _ in feed.taken[1:]:
        lines.ahead.popleft()
    size_bytes = sum(len(one.text) + 1 for one in feed.taken) - 1
    return Row(line.number, line.byte, size_bytes, cells, feed.taken[-1].ended)


def complaint(row: Row, width: int) -> tuple[str, str] | None:
    """Code and message of what is wrong with a row below a header of `width` names; a short one is no fault."""
    if not row.ended and len(row.cells) < width:
        return "row-cut", "the last row is cut and was not read"
    if len(row.cells) > width:
        return "row-not-read", "a row has more cells than the header"
    return None if row.cells else ("row-not-read", "the quotes of a row do not pair up")
