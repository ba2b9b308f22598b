"""Events of a stretch of a trace that is damaged JSON: as many as can be recovered, and what was lost.

Profilers have written bare `N/A` and NaN, unescaped quotes and backslashes in names, raw line ends and bytes that are
no UTF-8. The whole stretch is tried with its bare words replaced; then each event alone, as it is and repaired.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct, field

from forensics.errors import InputError
from forensics.formats.trace._event import COUNTER, REFUSED, Event, decoded_exactly, decoded_loosely, shaped
from forensics.formats.trace._layout import OPEN, Layout, Objects
from forensics.io.tolerant_json import loads
from forensics.patterns import lazily

_BARE = lazily(rb"([:\[,]\s*)-?(?:N/A|n/a|NaN|nan|Infinity|inf|None)(?=\s*[,}\]])")
_ESCAPE = lazily(rb'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')
_NAME = lazily(rb'"name"\s*:\s*"')
_NAME_END = lazily(rb'"\s*(?:,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|s|bp)"\s*:|\})')
_EMPTY = lazily(rb"\s*\{\s*\}\s*")
_QUOTE = lazily(rb'(?<!\\)"')
#: No event is longer, the longest of 70 recorded traces has 5,934 bytes: what is, is not repaired nor waited for.
_MOST_EVENT_BYTES = 1 << 20
_BLANK = b" \t\r\n,"


class Salvaged(Struct):
    """`end`: where the array ended in the stretch, if it did; `lost_bytes`: what gave no event.

    `reached`: where an event begins that is not whole yet, found by its braces.
    """

    events: list[Event] = field(default_factory=list[Event])
    repaired: int = 0
    lost_bytes: int = 0
    lost_at: int | None = None
    end: int | None = None
    reached: int | None = None

    def add(self, later: Salvaged) -> None:
        """Take what was found further on."""
        self.events += later.events
        self.repaired += later.repaired
        self.lost_bytes += later.lost_bytes
        self.lost_at = later.lost_at if self.lost_at is None else self.lost_at
        self.end = later.end


def salvage(data: bytes, layout: Layout | None, *, more: bool) -> Salvaged:
    """Read a stretch that did not decode as a list of events of the usual shape; `more` of its array may follow.

    Each byte is looked at a number of times that does not grow with the stretch, nor with what is wrong in it.
    """
    if (whole := _as_a_whole(data)) is not None:
        return whole
    found = Salvaged()
    if layout is not None and layout.sure:
        _by_marks(data, 0, len(data), layout, found)
    else:
        _by_braces(data, layout, found, more=more)
    return found


def _by_marks(data: bytes, start: int, stop: int, layout: Layout, found: Salvaged) -> None:
    """Every stretch between two marks alone; what is no event by itself together with its neighbours."""
    broken: int | None = None
    for begin, end in layout.parts(data, start, stop):
        event = _one(data[begin:end], found)
        if event is None:
            broken = begin if broken is None else broken
            continue
        if broken is not None:
            ended = _run(data, broken, begin, found)
            if ended is not None and OPEN.search(data, ended, begin):
                found.end = ended
                return
            if ended is not None:  # no array has ended where one more of its events follows
                _lose(found, ended - 1, data[ended - 1 : begin])
        broken = None
        found.events.append(event)
    if broken is not None:
        found.end = _run(data, broken, stop, found)


def _by_braces(data: bytes, layout: Layout | None, found: Salvaged, *, more: bool) -> None:
    """Outermost objects, where events may hold what looks like the mark; between them by marks."""

    def between(begin: int, end: int) -> None:
        if layout is not None and data[begin:end].strip(_BLANK):
            _by_marks(data, begin, end, layout, found)
            if found.end is not None and (more or end < len(data)):  # not the array's, which goes on
                _lose(found, found.end - 1, data[found.end - 1 : end])
                found.end = None
        else:
            _lose(found, begin, data[begin:end])

    objects = Objects(data)
    reached = 0
    for first, last in objects:
        if (event := _one(data[first:last], found)) is not None:
            between(reached, first)
            found.events.append(event)
            reached = last
    if objects.end is not None:
        between(reached, objects.end - 1)
        behind = Salvaged()
        goes_on = layout is not None and OPEN.search(data, objects.end) is None
        if layout is not None and goes_on:
            _by_marks(data, objects.end, len(data), layout, behind)
        if behind.events or (goes_on and more):  # no array has ended where one more of its events follows
            _lose(found, objects.end - 1, b"]")
            found.add(behind)
            found.end = None if more else found.end
        else:
            found.end = objects.end
    elif more and objects.open_at is not None and len(data) - objects.open_at <= _MOST_EVENT_BYTES:
        between(reached, objects.open_at)
        found.reached = objects.open_at
    else:
        between(reached, len(data))


def _as_a_whole(data: bytes) -> Salvaged | None:
    replaced, count = _BARE.subn(rb"\1null", data)
    for stretch in (data, replaced) if count else (data,):
        try:
            return Salvaged(decoded_loosely(stretch), repaired=count if stretch is replaced else 0)
        except REFUSED:
            continue
    return None


def _one(piece: bytes, found: Salvaged) -> Event | None:
    """One event, as it is or repaired; None where it is none: whatever has no phase, save `{}`, is a part of one."""
    events: list[Event] = []
    for reader in (decoded_exactly, decoded_loosely):
        with suppress(*REFUSED):
            events = reader(piece)
            if all(one.ph != COUNTER for one in events):  # the exact decoder leaves its series out
                break
    event = events[0] if len(events) == 1 else _repaired(piece) if not events else None
    if event is None or not (event.ph or _EMPTY.fullmatch(piece)):
        return None
    found.repaired += not events
    return event


def _repaired(piece: bytes) -> Event | None:
    if len(piece) > _MOST_EVENT_BYTES or not (piece.strip().startswith(b"{") and piece.strip().endswith(b"}")):
        return None
    tried = b""
    for change in (_bare_words, _escapes, _quotes):
        piece = change(piece)
        if piece == tried:
            continue
        tried = piece
        with suppress(InputError):
            return shaped(loads(piece))
    return None


def _bare_words(piece: bytes) -> bytes:
    return _BARE.sub(rb"\1null", piece)


def _escapes(piece: bytes) -> bytes:
    return _ESCAPE.sub(lambda m: m[0] if m[1] else rb"\\", piece)


def _quotes(piece: bytes) -> bytes:
    """Escape the quotes within names; a name reaches to the next place at which another key or the end follows it."""
    parts: list[bytes] = []
    at = 0
    while (name := _NAME.search(piece, at)) and (end := _NAME_END.search(piece, name.end())):
        parts += [piece[at : name.end()], _QUOTE.sub(rb"\"", piece[name.end() : end.start()])]
        at = end.start()
    return b"".join((*parts, piece[at:]))


def _run(data: bytes, begin: int, end: int, found: Salvaged) -> int | None:
    """Objects within parts that are no events by themselves; where the array ended among them, if it did."""
    stretch = data[begin:end]
    objects = Objects(stretch)
    reached = 0
    for first, last in objects:
        if (event := _one(stretch[first:last], found)) is not None:
            _lose(found, begin + reached, stretch[reached:first])
            found.events.append(event)
            reached = last
    if objects.end is None:
        _lose(found, begin + reached, stretch[reached:])
        return None
    _lose(found, begin + reached, stretch[reached : objects.end - 1])
    return begin + objects.end


def _lose(found: Salvaged, at: int, stretch: bytes) -> None:
    if lost := len(stretch.strip(_BLANK)):
        found.lost_bytes += lost
        found.lost_at = at if found.lost_at is None else found.lost_at
