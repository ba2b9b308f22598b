"""From the bytes of a trace to its events, block by block, with what stands before and behind their array.

Memory is one block, the unfinished event before it, and the events of the block. A file that was cut gives every event
that is whole; the bytes of the unfinished one are counted as lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from forensics.ingest._trace_event import REFUSED, Event, decoded
from forensics.ingest._trace_layout import OPEN, Layout, layout_of, whole_objects
from forensics.ingest._trace_salvage import Salvaged, salvage
from forensics.ingest._trace_skip import Kept, Skipper

#: Bytes before the array's bracket, and behind the array, that are kept for their facts.
_AROUND_BYTES = 16 << 20
#: An event may be this long before it is given up.
_MOST_BYTES = 64 << 20


@dataclass(slots=True)
class Stream:
    """The events of one trace and, once they are read to the end, what else was met.

    `head`, `tail`: bytes of the root around the array; `cut`: the array never ended; `lost_bytes`, `lost_at`: bytes
    (of the decoded stream) that gave no event, and the first of them; `arrays`: how many were read. With a `skipper`
    blocks are decoded in part where that can be; `kept` then says which events of the block were given last.
    """

    skipper: Skipper | None = None
    kept: Kept | None = None
    head: bytes = b""
    tail: bytes = b""
    cut: bool = False
    arrays: int = 0
    repaired: int = 0
    lost_bytes: int = 0
    lost_at: int | None = None
    _buffer: bytes = b""
    _at: int = 0
    _layout: Layout | None = None
    _inside: bool = False
    _end: int = 0

    @property
    def sound(self) -> bool:
        """Whether the events that were given last decoded as they stand in the file."""
        return self._end > 0

    def raw(self) -> bytes:
        """The bytes of the events that were given last, comma-separated, where they are sound."""
        return self._buffer[: self._end] if self.kept is None else self.kept.listed[1:-1]

    def events(self, chunks: Iterator[bytes]) -> Iterator[list[Event]]:
        """Give the events in order, one list a block."""
        for chunk in chunks:
            self._buffer += chunk
            yield from self._advance()
            if not self._inside and self.arrays == 0 and len(self._buffer) > _AROUND_BYTES:
                return
        yield from self._finish()

    def _advance(self) -> Iterator[list[Event]]:
        while self._inside or self._open():
            if self._layout is None:
                self._layout = layout_of(self._buffer)
            cut = self._layout.last_cut(self._buffer) if self._layout else None
            if cut is None:
                if len(self._buffer) > _MOST_BYTES:
                    end = max((last for _, last in whole_objects(self._buffer)), default=len(self._buffer))
                    yield from self._take(end, end)
                return
            yield from self._take(*cut)
            if self._inside:
                return

    def _open(self) -> bool:
        """Find the bracket of the (next) array in what is held outside of one."""
        found = OPEN.search(self._buffer) if self.arrays == 0 else OPEN.search(self._buffer, 1)
        if found is None:
            if self.arrays:
                self._keep_tail(self._buffer[: max(len(self._buffer) - 64, 0)])
            return False
        before = self._buffer[: found.start()]
        if self.arrays:
            self.tail += before[: _AROUND_BYTES - len(self.tail)]
        else:
            self.head = before
        self._drop(found.end())
        self.arrays += 1
        self._inside, self._layout = True, None
        return True

    def _take(self, end: int, begin: int) -> Iterator[list[Event]]:
        """Decode what is held up to `end`; go on at `begin`, or outside of the array where it ends before."""
        for stop, behind in self._stretches(end):
            with suppress(*REFUSED):
                events = self._decoded(stop)
                self._end = stop
                yield events
                self._inside = behind is None
                self._drop(begin if behind is None else behind)
                return
        found = salvage(self._buffer[:end], self._layout, more=begin > end)
        self._note(found)
        self.kept, self._end = None, 0
        if found.events:
            yield found.events
        self._inside = found.end is None
        self._drop(next(at for at in (found.end, found.reached, begin) if at is not None))

    def _decoded(self, stop: int) -> list[Event]:
        self.kept = self.skipper.decoded(self._buffer, stop, self._layout) if self.skipper else None
        return decoded(memoryview(self._buffer)[:stop]) if self.kept is None else self.kept.events

    def _stretches(self, end: int) -> Iterator[tuple[int, int | None]]:
        """What may be a list of events: all that is held, else up to where the array may end."""
        yield end, None
        if self._layout is not None:
            yield from self._layout.ends(self._buffer[:end])

    def _finish(self) -> Iterator[list[Event]]:
        while self._inside:
            self._layout = self._layout or layout_of(self._buffer)
            if self._buffer.strip() and not self._buffer.lstrip().startswith(b"]"):
                yield from self._take(len(self._buffer), len(self._buffer))
            elif b"]" in self._buffer:
                self._inside = False
                self._drop(self._buffer.index(b"]") + 1)
            if self._inside:
                self.cut, self._inside = True, False
            else:
                yield from self._advance()
        self._keep_tail(self._buffer)

    def _keep_tail(self, data: bytes) -> None:
        self.tail += data[: max(_AROUND_BYTES - len(self.tail), 0)]
        self._drop(len(data))

    def _note(self, found: Salvaged) -> None:
        self.repaired += found.repaired
        self.lost_bytes += found.lost_bytes
        if found.lost_at is not None and self.lost_at is None:
            self.lost_at = self._at + found.lost_at

    def _drop(self, count: int) -> None:
        """Let go of bytes, and of the comma that may stand behind them."""
        rest = self._buffer[count:]
        self._buffer = rest.lstrip(b" \t\r\n,") if self._inside and rest[:1] == b"," else rest
        self._at += count + len(rest) - len(self._buffer)
