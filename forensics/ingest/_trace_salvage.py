"""Events of a stretch of a trace that is no JSON as it stands: as many as can be had, and what was lost.

Profilers have written bare `N/A` and NaN, unescaped quotes and backslashes in names, raw line ends and bytes that are
no UTF-8. The whole stretch is tried with its bare words replaced; then each event alone, as it is and repaired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from forensics.errors import InputError
from forensics.ingest._trace_event import REFUSED, Event, decoded_exactly, decoded_loosely, shaped
from forensics.ingest._trace_layout import Layout, whole_objects
from forensics.io.tolerant_json import loads

_BARE = re.compile(rb"([:\[,]\s*)-?(?:N/A|n/a|NaN|nan|Infinity|inf|None)(?=\s*[,}\]])")
_ESCAPE = re.compile(rb'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')
_NAME = re.compile(rb'("name"\s*:\s*")(.*?)("\s*(?:,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|s|bp)"\s*:|\}))', re.DOTALL)
_QUOTE = re.compile(rb'(?<!\\)"')
#: An event longer than this is tried as it is only.
_MOST_REPAIR_BYTES = 1 << 20


@dataclass(slots=True)
class Salvaged:
    """`end`: where the array ended in the stretch, if it did; `lost_bytes`: what gave no event.

    `reached`: where an event begins that is not whole yet, where that is told by its braces.
    """

    events: list[Event] = field(default_factory=list[Event])
    repaired: int = 0
    lost_bytes: int = 0
    lost_at: int | None = None
    end: int | None = None
    reached: int | None = None


def salvage(data: bytes, layout: Layout | None, *, more: bool) -> Salvaged:
    """Read a stretch that did not decode as a list of events of the usual shape; `more` of its array may follow."""
    if (whole := _as_a_whole(data)) is not None:
        return whole
    marked = _by_marks(data, layout) if layout else None
    if marked is not None and not _cost(marked, data):
        return marked
    nested = Salvaged()
    _run(data, 0, len(data), nested, more=more)
    return nested if marked is None or _cost(nested, data) < _cost(marked, data) else marked


def _cost(found: Salvaged, data: bytes) -> int:
    """Bytes that gave no event, with those behind what was taken for the end of the array."""
    return found.lost_bytes + (len(data) - found.end if found.end is not None else 0)


def _by_marks(data: bytes, layout: Layout) -> Salvaged:
    """Every stretch between two marks alone; what is no event by itself together with its neighbours."""
    found = Salvaged()
    broken: int | None = None
    end = 0
    for begin, end in layout.parts(data):
        event = _one(data[begin:end], found)
        if event is None:
            broken = begin if broken is None else broken
            continue
        if broken is not None and _run(data, broken, begin, found):
            return found
        broken = None
        found.events.append(event)
    if broken is not None:
        _run(data, broken, end, found)
    return found


def _as_a_whole(data: bytes) -> Salvaged | None:
    replaced, count = _BARE.subn(rb"\1null", data)
    for stretch in (data, replaced) if count else (data,):
        try:
            return Salvaged(decoded_loosely(stretch), repaired=count if stretch is replaced else 0)
        except REFUSED:
            continue
    return None


def _one(piece: bytes, found: Salvaged) -> Event | None:
    """One event, as it is or repaired; None where it is none."""
    for reader in (decoded_exactly, decoded_loosely):
        try:
            events = reader(piece)
        except REFUSED:
            continue
        return events[0] if len(events) == 1 else None
    if len(piece) > _MOST_REPAIR_BYTES or not (piece.strip().startswith(b"{") and piece.strip().endswith(b"}")):
        return None
    for change in (_bare_words, _escapes, _quotes):
        piece = change(piece)
        try:
            event = loads(piece)
        except InputError:
            continue
        found.repaired += 1
        return shaped(event)
    return None


def _bare_words(piece: bytes) -> bytes:
    return _BARE.sub(rb"\1null", piece)


def _escapes(piece: bytes) -> bytes:
    return _ESCAPE.sub(lambda m: m[0] if m[1] else rb"\\", piece)


def _quotes(piece: bytes) -> bytes:
    return _NAME.sub(lambda m: m[1] + _QUOTE.sub(rb"\"", m[2]) + m[3], piece)


def _run(data: bytes, begin: int, end: int, found: Salvaged, *, more: bool = False) -> bool:
    """Objects within parts that are no events by themselves; true when the array ended among them."""
    stretch = data[begin:end]
    reached = 0
    for first, last in whole_objects(stretch):
        event = _one(stretch[first:last], found)
        if event is None:
            continue
        _lose(found, begin + reached, stretch[reached:first])
        found.events.append(event)
        reached = last
    rest = stretch[reached:]
    if reached and rest.lstrip()[:1] == b"]":
        found.end = end - len(rest.lstrip()) + 1
        return True
    if more and reached:
        found.reached = begin + reached
    else:
        _lose(found, begin + reached, rest)
    return False


def _lose(found: Salvaged, at: int, stretch: bytes) -> None:
    if lost := len(stretch.strip(b" \t\r\n,")):
        found.lost_bytes += lost
        found.lost_at = at if found.lost_at is None else found.lost_at
