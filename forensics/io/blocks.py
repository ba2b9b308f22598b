"""From a stream of bytes to blocks that end where a line ends, whatever the lines look like.

Lines end with a newline. Where none comes for too long, a carriage return ends a segment too, so that a progress bar
written over itself streams; line numbers still count newlines only. A segment longer than `line_bytes` keeps its begin
and its line end; the bytes between are lost and stated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from forensics.io.disk import Ledger, Piece
from forensics.io.limits import Limits

_SEARCH_BYTES = 64 << 10
_LARGE_BYTES = 1 << 20


class Block(Struct, frozen=True):
    """Whole lines of a decoded stream: `offset` is where `data` starts in it, `first_line` its 1-based line number.

    Only the last block of a stream may lack a line end. A block that ends with a cut line lacks the bytes before that
    line's end; the next block's offset counts them.
    """

    data: bytes
    offset: int
    first_line: int


def count_lines(data: bytes) -> int:
    """Newlines in `data`; large data are counted by numpy, five times as fast as `bytes.count`."""
    if len(data) < _LARGE_BYTES:
        return data.count(b"\n")
    import numpy as np  # noqa: PLC0415 - a small run should not pay for the import

    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == 10))


def _line_end(data: bytes, begin: int) -> int:
    """Position of the first newline or carriage return from `begin` on, or -1; one pass whatever the data."""
    for at in range(begin, len(data), _SEARCH_BYTES):
        newline = data.find(b"\n", at, at + _SEARCH_BYTES)
        ret = data.find(b"\r", at, newline if newline >= 0 else at + _SEARCH_BYTES)
        if ret >= 0 or newline >= 0:
            return ret if ret >= 0 else newline
    return -1


def _whole(data: bytes, line_bytes: int) -> int:
    """How many bytes of `data` are whole lines, or whole segments where the last line is over-long."""
    end = data.rfind(b"\n") + 1
    return max(end, data.rfind(b"\r", end) + 1) if len(data) - end > line_bytes else end


class _Cutter(Struct):
    """`carry` is the unfinished line, which began at `at`; `dropped` counts its bytes beyond `line_bytes`."""

    line_bytes: int
    ledger: Ledger
    carry: bytes = b""
    at: int = 0
    end: int = 0
    line: int = 1
    dropped: int = 0

    def feed(self, piece: Piece) -> Iterator[Block]:
        if piece.offset != self.end:
            yield from self.finish()
            self.at = piece.offset
        self.end = piece.offset + len(piece.data)
        data = piece.data
        if self.dropped:
            stop = _line_end(data, 0)
            if stop < 0:
                self.dropped += len(data)
                return
            self._lose(self.dropped + stop)
            yield self._block(self.carry + data[stop : stop + 1])
            data, self.at = data[stop + 1 :], piece.offset + stop + 1
        elif self.carry:
            data = self.carry + data
        whole = _whole(data, self.line_bytes)
        begin = self.at
        yield from self._lines(data[:whole])
        self.at = begin + whole
        self.dropped = max(len(data) - whole - self.line_bytes, 0)
        self.carry = data[whole : whole + self.line_bytes]

    def finish(self) -> Iterator[Block]:
        if self.dropped:
            self._lose(self.dropped)
        if self.carry:
            yield self._block(self.carry)
        self.carry, self.dropped = b"", 0

    def _lines(self, data: bytes) -> Iterator[Block]:
        """Blocks of `data`, which ends at a line end and begins at `self.at`; one block unless lines are over-long."""
        base, begin, at = self.at, 0, 0
        while len(data) - at > self.line_bytes:
            window = at + self.line_bytes + 1
            found = max(data.rfind(b"\n", at, window), -1)
            if found < 0:
                found = data.rfind(b"\r", at, window)
            if found < 0:
                stop = _line_end(data, window)
                yield self._cut(data[begin : window - 1] + data[stop : stop + 1], base + begin, stop - window + 1)
                found = stop
                begin = stop + 1
            at = found + 1
        self.at = base + begin
        if begin < len(data):
            yield self._block(data[begin:] if begin else data)

    def _cut(self, data: bytes, at: int, lost: int) -> Block:
        self.at = at
        line = self.line + count_lines(data) - data.endswith(b"\n")
        self._lose(lost, line)
        return self._block(data)

    def _block(self, data: bytes) -> Block:
        block = Block(data, self.at, self.line)
        self.line += count_lines(data)
        return block

    def _lose(self, count: int, line: int | None = None) -> None:
        self.ledger.lost_bytes += count
        message = f"longer than {self.line_bytes} bytes; its begin was kept"
        self.ledger.problem("long-line", message, byte=self.at, line=line or self.line)


def cut_blocks(pieces: Iterable[Piece], limits: Limits, ledger: Ledger, first_line: int = 1) -> Iterator[Block]:
    """Cut a stream into blocks; memory is bounded by one piece and one line of `limits.line_bytes`."""
    cutter = _Cutter(limits.line_bytes, ledger, line=first_line)
    for piece in pieces:
        ledger.decoded_bytes = max(ledger.decoded_bytes, piece.offset + len(piece.data))
        yield from cutter.feed(piece)
    yield from cutter.finish()
