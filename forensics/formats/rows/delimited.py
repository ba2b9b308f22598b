"""Rows of a delimited text with their places: quoted cells may hold delimiters and line ends, damage stays local."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from msgspec import Struct, field

from forensics.formats.rows.out import Out
from forensics.formats.rows.text import Line
from forensics.io.blocks import Block, count_lines
from forensics.io.limits import DEFAULT
from forensics.io.reading import Opened
from forensics.patterns import lazily

#: Bounds of one row; a quote that does not close within them is a letter, and its line is a row.
MOST_COLUMNS = 10_000
_ROW_LINES = 200
_ROW_BYTES = 1 << 16
#: Bytes that may be looked at behind open quotes, for each byte of the file: more only where most quotes never close.
_LOOKS = 4
_DELIMITERS = (",", "\t", ";")
_HEAD_BYTES = 1 << 16
#: Bytes with which a line is more than cells between delimiters: a quote, a NUL, rare blanks, anything beside ASCII.
_ODD_ASCII = b'"\0\x0b\x0c\x1c\x1d\x1e\x1f'
_ODD = lazily(rb"[" + _ODD_ASCII + rb"\x80-\xff]")


class Sizes(Struct, frozen=True):
    """How many plain lines are read as columns; all change speed only.

    Fewer bytes, or lines that fit the header, are read one by one in less time than columns take to be made; more than
    `most_bytes` are cut in parts.
    """

    least_bytes: int = 8 << 10
    most_bytes: int = 1 << 20
    least_lines: int = 50


class Row(NamedTuple):
    """One row; `line` (from 1) and `byte` are those of its first line, `ended` is false where the file stops in it."""

    line: int
    byte: int
    size_bytes: int
    cells: list[str]
    ended: bool


class Stretch(NamedTuple):
    """Whole lines of ASCII without a quote or a NUL; `line` (from 1) and `byte` are those of the first."""

    line: int
    byte: int
    data: bytes

    def rows(self, delimiter: str) -> Iterator[Row]:
        """Give its rows one by one."""
        yield from _rows(_Lines(iter([Block(self.data, self.byte, self.line)])), delimiter, None)


class _Lines(Struct):
    """Lines of a source; those that were looked at and are not taken yet are `ahead`."""

    blocks: Iterator[Block]
    data: bytes = b""
    at: int = 0
    #: where the next odd byte of `data` stands, at or behind `at`
    odd: int = 0
    byte: int = 0
    number: int = 1
    ahead: deque[Line] = field(default_factory=deque[Line])
    looked_bytes: int = 0

    def next_line(self) -> Line | None:
        """Take the next line."""
        return self.ahead.popleft() if self.ahead else self._cut()

    def next_stretch(self, sizes: Sizes) -> Stretch | None:
        """Take plain lines as far as they go; None where they are too few to pay."""
        if self.ahead or not self._fill():
            return None
        if self.odd < self.at:
            found = _ODD.search(self.data, self.at)
            self.odd = len(self.data) if found is None else found.start()
        if self.odd - self.at < sizes.least_bytes:
            return None
        end = self.data.rfind(b"\n", self.at, min(self.odd, self.at + sizes.most_bytes)) + 1
        if end - self.at < sizes.least_bytes:
            return None
        found = Stretch(self.number, self.byte + self.at, self.data[self.at : end])
        self.at, self.number = end, self.number + count_lines(found.data)
        return found

    def following(self, line: Line) -> Iterator[Line]:
        """Look at the lines behind the one taken last, as far as the file up to it has paid for."""
        held = list(islice(self.ahead, _ROW_LINES))
        for count, follows in enumerate(chain(held, iter(self._cut, None))):
            if count >= len(held):
                self.ahead.append(follows)
            self.looked_bytes += len(follows.text) + 1
            if self.looked_bytes > _LOOKS * (line.byte + _ROW_BYTES):
                return
            yield follows

    def _fill(self) -> bool:
        """Have bytes to take; false at the end of the source."""
        while self.at >= len(self.data):
            block = next(self.blocks, None)
            if block is None:
                return False
            self.data, self.byte, self.number = block.data, block.offset, block.first_line
            self.at, self.odd = 0, len(self.data) if self.data.isascii() and not _is_odd(self.data) else -1
        return True

    def _cut(self) -> Line | None:
        if not self._fill():
            return None
        begin, number, end = self.at, self.number, self.data.find(b"\n", self.at)
        stop = len(self.data) if end < 0 else end
        self.at, self.number = stop + 1, number + 1
        return Line(number, self.byte + begin, self.data[begin:stop].removesuffix(b"\r"), end >= 0)


def _is_odd(data: bytes) -> bool:
    return any(byte in data for byte in _ODD_ASCII)


class _Feed(Struct):
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


def _delimiter(lines: Iterable[bytes]) -> str:
    """The delimiter of the first line, or of the first behind comments: the last of these may be the header."""
    last = b""
    for line in lines:
        own = delimiter_of(line)
        if not line.lstrip().startswith(b"#"):
            named = delimiter_of(last)
            return named if last.count(named.encode()) == line.count(named.encode()) > 0 else own
        last = line
    return delimiter_of(last)


def first_rows(opened: Opened, count: int) -> tuple[str, list[list[str]]]:
    """The delimiter, and the cells of up to `count` rows of the head, blank ones left out."""
    head = opened.text_head(_HEAD_BYTES)
    if head.count(b"\n") < 2:
        head = opened.text_head(DEFAULT.line_bytes)
    delimiter = _delimiter(line for line in head.split(b"\n") if line.strip())
    # what follows the last newline is a line, too, be it empty: a quote above may reach into it
    lines = _Lines(iter([Block(head + b"\n", 0, 1)]))
    return delimiter, [row.cells for row in islice(_rows(lines, delimiter, None), count)]


def rows_of(opened: Opened, delimiter: str = ",", out: Out | None = None) -> Iterator[Row]:
    """Every row that is not blank, in order; a quote that does not close is stated to `out`."""
    yield from _rows(_Lines(opened.blocks()), delimiter, out)


def stretches_of(opened: Opened, delimiter: str, out: Out, sizes: Sizes) -> Iterator[Row | Stretch]:
    """Give every row as `rows_of`, but plain lines together."""
    lines = _Lines(opened.blocks())
    while True:
        if (stretch := lines.next_stretch(sizes)) is not None:
            yield stretch
        elif (row := next(_rows(lines, delimiter, out), None)) is not None:
            yield row
        else:
            return


def _rows(lines: _Lines, delimiter: str, out: Out | None) -> Iterator[Row]:
    while (line := lines.next_line()) is not None:
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


def refused(row: Row, width: int, out: Out) -> int:
    """Bytes of a row that does not fit a header of `width` names, after saying why; 0 of one that fits or is short."""
    if not row.ended and len(row.cells) < width:
        out.issue("row-cut", "the last row is cut and was not read", byte=row.byte, line=row.line)
    elif row.cells and len(row.cells) <= width:
        return 0
    else:
        why = "a row has more cells than the header" if row.cells else "the quotes of a row do not pair up"
        out.issue("row-not-read", why, byte=row.byte, line=row.line)
    return row.size_bytes
