"""A whole text log, block by block: metrics, checkpoints and events of everything that is known about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from forensics.dialects import _lines, _prefix, _signatures, _times, _tracebacks
from forensics.dialects._engine import Matcher, Tables
from forensics.dialects.spec import Dialect

#: Tracebacks of one file that are assembled; further ones are counted.
TRACEBACKS = 500
_CROWD = 0.3
_LAYOUTS = 64
_WINDOW_BYTES = 64 << 10
_EVENTS = {
    "seq": pl.Int64(), "line": pl.Int64(), "byte": pl.Int64(), "rank": pl.Int64(), "step": pl.Int64(),
    "level": pl.String(), "code": pl.String(), "text": pl.String(), "attrs": pl.String(),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may be kept of one file: characters of a quote, lines of a traceback; `year` for stamps that print none."""

    quote_chars: int = 400
    traceback_lines: int = 400
    year: int = 1970


class Reader:
    """Feed the blocks of one file in order, then `close`; each call gives tables that are final."""

    __slots__ = (
        "_bounds",
        "_crowded",
        "_last",
        "_matcher",
        "_pattern",
        "_scanner",
        "_seq",
        "_tasks",
        "_tracebacks",
        "lines",
    )

    def __init__(self, dialects: Sequence[Dialect], bounds: Bounds, *, tasks: bool = True) -> None:
        """Read with these dialects, best first; `tasks`: whether lines may begin with the task number of `srun -l`."""
        self._bounds = bounds
        self._tasks = tasks
        self._matcher = Matcher(dialects, year=bounds.year) if dialects else None
        self._scanner = _signatures.Scanner(quote_chars=bounds.quote_chars)
        self._tracebacks = _tracebacks.Assembler(
            most=TRACEBACKS, window_bytes=_WINDOW_BYTES, lines=bounds.traceback_lines, quote_chars=bounds.quote_chars
        )
        self._pattern = _signatures.pattern()
        self._last: tuple[bytes, int, int] | None = None
        self._seq = 0
        self._crowded = False
        self.lines = 0

    def feed(self, data: bytes, *, offset: int, first_line: int) -> list[Tables]:
        """Read one block of whole lines."""
        cut = _lines.Cut(data, first_line=first_line, offset=offset, first_seq=self._seq)
        events = self._tracebacks.go_on(data)
        suspects, printed = self._chosen(cut)
        if suspects.height:
            events += self._scanner.feed(suspects)
            events += self._tracebacks.feed(suspects, data, offset)
        ready = [self._events(events)] if events else []
        if self._matcher is not None and printed.height:
            ready += self._matcher.feed(printed)
        if not data.isspace():
            self._last = (data, offset, first_line)
        self._seq += cut.height
        self.lines = first_line - 1 + cut.height
        return ready

    def _chosen(self, cut: _lines.Cut) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Segments that may hold a signature, and those that a dialect may read.

        Where few segments are either, one pass over all finds both; where most are, two passes are cheaper.
        """
        own = None if self._matcher is None else self._matcher.pattern
        if self._matcher is None or own is None or self._crowded:
            suspects = _prefix.strip(cut.select(self._pattern), tasks=self._tasks)
            printed = suspects.clear() if self._matcher is None else _prefix.strip(cut.select(own), tasks=self._tasks)
            self._crowded = printed.height > cut.height * _CROWD
            return suspects, printed
        either = _prefix.strip(cut.select(f"{self._pattern}|{own}"), tasks=self._tasks)
        self._crowded = either.height > cut.height * _CROWD
        suspects, printed = (either.filter(pl.col("raw").str.contains(p)) for p in (self._pattern, own))
        return suspects, printed

    def close(self) -> tuple[list[Tables], list[tuple[str, int]]]:
        """What was held back, and how many hits of which code were left out of a flood."""
        kept, flooded = self._scanner.close()
        events = self._tracebacks.close() + kept + self._last_line()
        if self._tracebacks.left_out:
            flooded = [*flooded, ("traceback", self._tracebacks.left_out)]
        ready = self._matcher.close() if self._matcher is not None else []
        return [self._events(events), *ready], flooded

    def _events(self, rows: list[dict[str, Any]]) -> Tables:
        frame = pl.DataFrame(rows, schema=_EVENTS | {"stamped": pl.String()})
        t_ns = _times.read(frame["stamped"], self._bounds.year, rounds=_LAYOUTS, looked_at=frame.height)
        return {"events": frame.with_columns(t_ns=t_ns).drop("stamped")}

    def _last_line(self) -> list[dict[str, Any]]:
        if self._last is None:
            return []
        data, offset, first_line = self._last
        end = len(data.rstrip())
        begin = 1 + max(data.rfind(mark, 0, end) for mark in (b"\n", b"\r", b"\x08"))
        text = _tracebacks.plain(data[begin:end][: self._bounds.quote_chars * 4])
        line = first_line + data.count(b"\n", 0, begin)
        row: dict[str, Any] = dict.fromkeys(_EVENTS)
        row |= {"seq": self._seq, "line": line, "byte": offset + begin, "level": "info", "code": "last_line"}
        row |= {"text": text[: self._bounds.quote_chars], "rank": _prefix.split(text)[1], "stamped": text}
        return [row | {"attrs": '{"role":"context","shape":""}'}]
