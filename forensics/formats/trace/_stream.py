"""From the bytes of a trace to its events, block by block, with the text before and behind their array.

Memory is one block, the unfinished event before it, and the events of the block. A file that was cut gives every event
that is whole; the bytes of the unfinished one are counted as lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct, field

from forensics.formats.trace._event import REFUSED, Event, decoded
from forensics.formats.trace._layout import OPEN, UNNAMED, Layout, Objects, layout_of
from forensics.formats.trace._salvage import Salvaged, salvage

#: What opens an array is not longer.
_OPEN_BYTES = 64
#: Bytes before the array's bracket, and behind the array, that are kept for their facts.
_AROUND_BYTES = 16 << 20
#: An event may be this long before it is given up.
_MOST_BYTES = 64 << 20


class Stream(Struct):
    """The events of one trace and, once they are read to the end, what else was met.

    `around`: bytes of the root before the array, behind it, and between two of them; `cut`: the array never ended;
    `lost_bytes`, `lost_at`: bytes (of the decoded stream) that gave no event, and the first of them; `arrays`: how many
    were read. With `device_only` events come without what no analysis of the device reads.
    """

    device_only: bool = False
    around: list[bytes] = field(default_factory=list[bytes])
    cut: bool = False
    arrays: int = 0
    repaired: int = 0
    lost_bytes: int = 0
    lost_at: int | None = None
    #: Bytes that must come before it is worth while to look again: as many as were looked at in vain.
    _needed: int = 0
    _between: bytes = b""
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
        return self._buffer[: self._end]

    def events(self, chunks: Iterator[bytes]) -> Iterator[list[Event]]:
        """Give the events in order, one list a block."""
        waiting: list[bytes] = []
        size_bytes = 0
        for chunk in chunks:
            waiting.append(chunk)
            size_bytes += len(chunk)
            if size_bytes < self._needed:
                continue
            self._buffer = b"".join((self._buffer, *waiting))
            waiting.clear()
            self._needed = 0
            yield from self._advance()
            if self.arrays == 0 and len(self._buffer) > _AROUND_BYTES:
                if not self._open(UNNAMED):
                    break
                yield from self._advance()
            size_bytes = 0
        self._buffer = b"".join((self._buffer, *waiting))
        yield from self._finish()

    def _advance(self) -> Iterator[list[Event]]:
        while self._inside or self._open():
            cut = self._cut()
            if cut is not None:
                yield from self._take(*cut)
            elif len(self._buffer) > _MOST_BYTES:
                end = max((last for _, last in Objects(self._buffer)), default=len(self._buffer))
                yield from self._take(end, end)
            else:
                self._needed = len(self._buffer)
            if self._inside:
                return

    def _cut(self) -> tuple[int, int] | None:
        """The end of the last whole event, and the begin of the next; a layout that fits no more is replaced."""
        for layout in (self._layout, None):
            self._layout = layout or layout_of(self._buffer) or self._layout
            if self._layout is not None and (cut := self._layout.last_cut(self._buffer)):
                return cut
        return None

    def _open(self, pattern: re.Pattern[bytes] = OPEN) -> bool:
        """Find the bracket of the (next) array in what is held outside of one."""
        found = pattern.search(self._buffer, 1 if self.arrays else 0)
        if found is None:
            if self.arrays:
                self._keep(max(len(self._buffer) - _OPEN_BYTES, 0))
            else:
                self._needed = len(self._buffer)
            return False
        self._keep(found.start())
        self._between, self.around = b"", [*self.around, self._between]
        self._drop(found.end() - found.start())
        self.arrays += 1
        self._inside, self._layout = True, None
        return True

    def _take(self, end: int, begin: int) -> Iterator[list[Event]]:
        """Decode what is held up to `end`; go on at `begin`, or outside of the array where it ends before."""
        for stop, behind in self._stretches(end):
            with suppress(*REFUSED):
                events = decoded(memoryview(self._buffer)[:stop], device_only=self.device_only)
                self._end = stop
                yield events
                self._inside = behind is None
                self._drop(begin if behind is None else behind)
                return
        found = salvage(self._buffer[:end], self._layout, more=begin > end and end <= _MOST_BYTES)
        self._note(found)
        self._end = 0
        if found.events:
            yield found.events
        self._inside = found.end is None
        self._drop(next(at for at in (found.end, found.reached, begin) if at is not None))
        if found.reached is not None:
            self._needed = len(self._buffer)

    def _stretches(self, end: int) -> Iterator[tuple[int, int | None]]:
        """What may be a list of events: all that is held, else up to where the array may end."""
        yield end, None
        if self._layout is not None:
            yield from self._layout.ends(self._buffer[:end])

    def _finish(self) -> Iterator[list[Event]]:
        if not self.arrays and self._open(UNNAMED):
            yield from self._advance()
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
        if self.arrays:
            self._keep(len(self._buffer))
            self.around.append(self._between)
        else:
            self._note(Salvaged(lost_bytes=len(self._buffer), lost_at=0))

    def _keep(self, count: int) -> None:
        """Let go of bytes outside of arrays; the first of them are kept for their facts."""
        self._between += self._buffer[: max(min(count, _AROUND_BYTES - len(self._between)), 0)]
        self._drop(count)

    def _note(self, found: Salvaged) -> None:
        self.repaired += found.repaired
        self.lost_bytes += found.lost_bytes
        if found.lost_at is not None and self.lost_at is None:
            self.lost_at = self._at + found.lost_at

    def _drop(self, count: int) -> None:
        """Let go of bytes, and of the comma that may follow them."""
        rest = self._buffer[count:]
        self._buffer = rest.lstrip(b" \t\r\n,") if self._inside and rest[:1] == b"," else rest
        self._at += count + len(rest) - len(self._buffer)
