"""The console that a W&B log keeps: one stream as text, read like any log, each line at its byte in the file."""

from __future__ import annotations

from array import array
from bisect import bisect_right

import polars as pl

from forensics import registry
from forensics.dialects import sniff
from forensics.dialects.reader import Bounds, Reader
from forensics.formats.rows.out import Out
from forensics.formats.text.log import say_flood
from forensics.formats.text.sample import choose

#: The dialects are chosen on this much of a stream, and it is read in pieces of this size.
_PIECE_BYTES = 1 << 20


class Console:
    """One stream. Feed the pieces of its text as they come, then `close`."""

    def __init__(self, out: Out, bounds: Bounds, rank: int | None, piece_bytes: int = _PIECE_BYTES) -> None:
        """Write to `out`; `rank` is that of the file, `piece_bytes` at most are read at once."""
        self._piece_bytes = min(piece_bytes, _PIECE_BYTES)
        self._out = out
        self._bounds = bounds
        self._rank = rank
        self._reader: Reader | None = None
        self._text = bytearray()
        self._at = 0
        self._line = 1
        self._offsets = array("q")
        self._files = array("q")
        self._times = array("q")
        self._lines = array("q")
        self._fed_line = 1
        self.dialects: tuple[str, ...] = ()

    def feed(self, text: bytes, file_byte: int, t_ns: int) -> None:
        """Add text that stands at `file_byte`, printed at `t_ns` (0 where that is unknown)."""
        self._offsets.append(self._at + len(self._text))
        self._files.append(file_byte)
        self._times.append(t_ns)
        self._lines.append(self._fed_line)
        self._fed_line += text.count(b"\n")
        self._text += text
        if len(self._text) >= self._piece_bytes:
            self._read(self._text.rfind(b"\n") + 1 or len(self._text))

    def close(self) -> int:
        """Read the rest; give the number of lines."""
        if self._text:
            self._read(len(self._text))
        if self._reader is None:
            return 0
        ready, flooded = self._reader.close()
        self._write(ready)
        for code, count in flooded:
            say_flood(self._out, code, count)
        return self._reader.lines

    def _read(self, size: int) -> None:
        piece = bytes(self._text[:size])
        del self._text[:size]
        if self._reader is None:
            sample = sniff.sample_of([piece])
            chosen = choose(registry.load("dialects").dialects, sample, self._bounds.calendar)
            self.dialects = tuple(dialect.name for dialect in chosen)
            self._reader = Reader(chosen, self._bounds)
        self._write(self._reader.feed(piece, offset=self._at, first_line=self._line))
        self._at += size
        self._line += piece.count(b"\n")

    def _write(self, ready: list[dict[str, pl.DataFrame]]) -> None:
        for tables in ready:
            for table, rows in tables.items():
                if rows.height:
                    self._out.rows(table, self._placed(rows))

    def _placed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Replace places in the text by places in the file, so that all content of the file is in one order."""
        frame = rows
        if "byte" in frame.columns:
            spots = [self._spot(at) for at in frame["byte"].fill_null(0).to_list()]
            places = pl.Series("byte", [place for place, _ in spots], dtype=pl.Int64)
            times = pl.Series("t_ns", [t_ns or None for _, t_ns in spots], dtype=pl.Int64)
            if "t_ns" in frame.columns:
                times = frame.select(pl.coalesce(times, pl.col("t_ns").cast(pl.Int64)))["t_ns"]
            frame = frame.with_columns(places, places.alias("seq"), times.alias("t_ns"))
        elif "line" in frame.columns:
            pieces = [max(bisect_right(self._lines, line) - 1, 0) for line in frame["line"].fill_null(1).to_list()]
            places = pl.Series("seq", [self._files[piece] for piece in pieces], dtype=pl.Int64)
            frame = frame.with_columns(places, t_ns=pl.Series([self._times[p] or None for p in pieces], dtype=pl.Int64))
        if "attrs" in frame.columns:
            noted = pl.concat_str(
                pl.col("attrs").str.strip_suffix("}"),
                pl.lit(',"console_line":"'),
                pl.col("line").cast(pl.String),
                pl.lit('"}'),
            )
            frame = frame.with_columns(attrs=pl.when(pl.col("line").is_not_null()).then(noted).otherwise("attrs"))
        if "line" in frame.columns:
            frame = frame.with_columns(line=pl.lit(None, dtype=pl.Int64))
        if "rank" in frame.columns and self._rank is not None:
            frame = frame.with_columns(rank=pl.lit(self._rank, dtype=pl.Int32))
        return frame

    def _spot(self, at: int) -> tuple[int, int]:
        piece = max(bisect_right(self._offsets, at) - 1, 0)
        return self._files[piece] + at - self._offsets[piece], self._times[piece]
