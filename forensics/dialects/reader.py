"""A whole text log, block by block: metrics, checkpoints and events of everything that is known about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.dialects import _counters, _lines, _times, prefixes
from forensics.dialects.clocks import Calendar
from forensics.dialects.engine import Matcher, Tables
from forensics.dialects.events import collectives, elastic, headless, heads, signatures, tracebacks, wrapped
from forensics.dialects.events.last_words import last_words
from forensics.dialects.handover import Handover
from forensics.dialects.spec import Dialect
from forensics.io.blocks import count_lines

#: Share of the segments from which it pays to leave out those that can hold no signature.
_CROWD = 0.3
#: Suspects that are worth a scan.
_SCAN_ROWS, _SCAN_BYTES = 4096, 4 << 20
_LAYOUTS = 64
_EVENTS = {
    "seq": pl.Int64(), "line": pl.Int64(), "byte": pl.Int64(), "rank": pl.Int64(), "step": pl.Int64(),
    "level": pl.String(), "code": pl.String(), "text": pl.String(), "attrs": pl.String(),
}  # fmt: skip


class Bounds(Struct, frozen=True):
    """What may be kept of one file: characters of a quote, lines of a traceback; and what its stamps leave out."""

    quote_chars: int = 400
    traceback_lines: int = 400
    calendar: Calendar = Calendar()


class Begins(Struct, frozen=True):
    """How lines of one file begin: with the task number of `srun -l`, and with what leads each of them.

    A carrier's lead stays before the records that dialects read.
    """

    tasks: bool = True
    lead: prefixes.Lead | None = None

    @property
    def tag(self) -> prefixes.Lead | None:
        """The lead, where it says who printed a line."""
        return self.lead if self.lead is not None and self.lead.tells_rank else None


_PLAIN = Begins()


class Reader:
    """Feed the blocks of one file in order, then `close`; each call gives tables that are final."""

    def __init__(
        self, dialects: Sequence[Dialect], bounds: Bounds, begins: Begins = _PLAIN, *, first_seq: int = 0
    ) -> None:
        """Read with these dialects, best first; `first_seq`: segments before the first block."""
        self._bounds = bounds
        self._begins = begins
        self._matcher = Matcher([*dialects, _counters.COUNTERS], bounds.calendar)
        self._scanner = signatures.Scanner(quote_chars=bounds.quote_chars)
        self._tracebacks = tracebacks.Assembler(
            most=tracebacks.MOST,
            window_bytes=tracebacks.WINDOW_BYTES,
            lines=bounds.traceback_lines,
            quote_chars=bounds.quote_chars,
            lead=begins.lead,
        )
        self._pattern = signatures.pattern()
        self._heads = heads.Heads()
        self._last: tuple[bytes, int, int, int] | None = None
        self._seq = first_seq
        #: The begin of a record that may go on in the next block, its offset and its first line.
        self._open: tuple[bytes, int, int] = b"", 0, 0
        self._waiting: list[pl.DataFrame] = []
        self._waiting_rows = self._waiting_bytes = 0
        self.lines = 0

    def warm(self, head: bytes, before: bytes) -> None:
        """Learn from the head of a log and from what stands before the first block, both of whole lines.

        No row comes of them: the first lines of a part take their step from those before, and the lines of the head
        and the kind of line that counts restarts are those of the whole log.
        """
        self._heads.feed(_lines.Cut(head))
        breaks = [_lines.Cut(part).count for part in (head, before)]
        for part, first_seq in ((head, self._seq - sum(breaks)), (before, self._seq - breaks[1])):
            _, printed = self._chosen(_lines.Cut(part, first_seq=first_seq))
            self._matcher.feed(printed)
        self._matcher.begin_anew()
        self._heads.begin_anew()

    def feed(self, data: bytes, *, offset: int, first_line: int) -> list[Tables]:
        """Read one block of whole lines; a record over several lines at its end is read with the next one."""
        held, at, line = self._open
        ready: list[Tables] = []
        if held and at + len(held) != offset:  # bytes between them were lost
            ready += self._read(held, offset=at, first_line=line)
            held = b""
        data, offset, first_line = held + data, offset - len(held), line if held else first_line
        end = _lines.whole_records(data)
        is_whole = end == len(data)
        self._open = data[end:], offset + end, first_line if is_whole else first_line + count_lines(data[:end])
        return ready + (self._read(data[:end], offset=offset, first_line=first_line) if end else [])

    def _read(self, data: bytes, *, offset: int, first_line: int) -> list[Tables]:
        cut = _lines.Cut(data, first_line=first_line, offset=offset, first_seq=self._seq)
        events = self._tracebacks.go_on(data) + self._heads.feed(cut)
        suspects, printed = self._chosen(cut)
        if not offset and not self._seq and (opened := headless.opening(data, self._begins.lead)) is not None:
            events += self._tracebacks.headless(*opened)
        if suspects.height:
            suspects = wrapped.mended(suspects, data, offset, self._begins.lead)
            events += self._scanned(suspects)
            events += elastic.records(suspects, data, offset, self._bounds.quote_chars, self._begins.lead)
            events += self._tracebacks.feed(suspects, data, offset)
        ready = [self._events(events)] if events else []
        ready += map(_filled, self._matcher.feed(printed))
        if not data.isspace():
            self._last = (data, offset, first_line, self._seq)
        self._seq += cut.count
        self.lines = first_line - 1 + cut.count
        return ready

    def _chosen(self, cut: _lines.Cut) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Segments that may hold a signature, and those that a dialect may read in the general way."""
        printed, quiet = self._matcher.take(cut.select(self._matcher.pattern, literals=self._matcher.needles))
        crowded = len(quiet) > cut.height * _CROWD
        suspects = cut.select(self._pattern, but=quiet if crowded else None, literals=signatures.literals())
        tasks, lead = self._begins.tasks, self._begins.lead
        tag = self._begins.tag
        return prefixes.strip(suspects, tasks=tasks, lead=lead), prefixes.strip(printed, tasks=tasks, lead=tag)

    def _scanned(self, suspects: pl.DataFrame) -> list[dict[str, Any]]:
        """Signatures of the suspects of several blocks at once: few segments cost as much as thousands."""
        self._waiting.append(suspects)
        self._waiting_rows += suspects.height
        self._waiting_bytes += int(suspects["raw"].str.len_bytes().sum())
        return [] if self._waiting_rows < _SCAN_ROWS and self._waiting_bytes < _SCAN_BYTES else self._scan()

    def _scan(self) -> list[dict[str, Any]]:
        waiting, self._waiting, self._waiting_rows, self._waiting_bytes = self._waiting, [], 0, 0
        return self._scanner.feed(pl.concat(waiting)) if waiting else []

    def close(self, *, is_last: bool = True) -> tuple[list[Tables], list[tuple[str, int]]]:
        """What was held back, and how many hits of which code were left out of a flood; `is_last`: the log ends."""
        held, at, line = self._open
        before, rest = self._last, self._read(held, offset=at, first_line=line) if held else []
        if held and before is not None and before[1] + len(before[0]) == at:  # the last words stand in one block
            self._last = (before[0] + held, *before[1:])
        events = self._tracebacks.close() + self._scan()
        kept, flooded = self._scanner.close()
        events += kept + (self._last_line() if is_last else [])
        if self._tracebacks.left_out:
            flooded = [*flooded, ("traceback", self._tracebacks.left_out)]
        return [*rest, self._events(events), *map(_filled, self._matcher.close())], flooded

    def handover(self) -> Handover:
        """Say what other parts of the log need to know of the one that was read."""
        return Handover(
            heads=tuple(self._heads.counts),
            tracebacks=self._tracebacks.count + self._tracebacks.left_out,
            floods=tuple(self._scanner.floods()),
            streams=self._matcher.streams(),
            drained=tuple(self._matcher.drained),
            ends=self._last is not None,
        )

    def _events(self, rows: list[dict[str, Any]]) -> Tables:
        stamped = pl.Series([row["stamped"] for row in rows], dtype=pl.String)
        t_ns = _times.read(stamped, self._bounds.calendar, rounds=_LAYOUTS, looked_at=len(rows))
        columns = [pl.Series(name, [row[name] for row in rows], dtype=dtype) for name, dtype in _EVENTS.items()]
        frame = pl.DataFrame(columns)
        t_ns = self._bounds.calendar.dated(t_ns, frame["byte"])
        tables = {"events": frame.hstack([t_ns.rename("t_ns")])}
        named = collectives.rows_of(rows)
        return tables | ({"collectives": named} if named.height else {})

    def _last_line(self) -> list[dict[str, Any]]:
        if self._last is None:
            return []
        data, offset, first_line, first_seq = self._last
        end = len(data.rstrip())
        begin = 1 + max(data.rfind(mark, 0, end) for mark in (b"\n", b"\r", b"\x08"))
        text = tracebacks.plain(data[begin:end][: self._bounds.quote_chars * 4])
        line = first_line + data.count(b"\n", 0, begin)
        row: dict[str, Any] = dict.fromkeys(_EVENTS)
        row |= {"seq": self._seq, "line": line, "byte": offset + begin, "level": "info", "code": "last_line"}
        row |= {
            "text": text[: self._bounds.quote_chars],
            "rank": prefixes.split(text, self._begins.lead)[1],
            "stamped": text,
        }
        ended = None if re.search(signatures.SOURCE, text) else last_words(text, data[:begin])
        said = [] if ended is None else [row | {"code": ended.id, "attrs": signatures.attributes(ended)}]
        last = row | {"attrs": '{"role":"context","shape":""}'}
        before, at, alone = headless.closing(data, self._begins.lead) or (0, 0, {})
        if not alone or self._tracebacks.has_read(first_seq + before):
            return [last, *said]
        place = {"seq": first_seq + before, "line": first_line + data.count(b"\n", 0, at), "byte": offset + at}
        return [last, place | alone | {"text": alone["text"][: self._bounds.quote_chars]}]


def _filled(tables: Tables) -> Tables:
    """The tables that have rows."""
    return {name: rows for name, rows in tables.items() if rows.height}
