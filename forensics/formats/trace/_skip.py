"""Passes over events of a trace that nobody asked for by their bytes, without decoding them.

The first bytes of all events of one kind are alike in a file: they tell phase, category and where the name begins. What
is not proven to be of a kind that may be left out, by that and by how it ends, is decoded. What is passed over is
checked to be JSON: damage may swallow the begin of a kernel, and a fifth of the time is its price. An event of a writer
that states a key twice is not met.
"""

from __future__ import annotations

import re
from collections import Counter as Tally

import numpy as np
from msgspec import Struct, field

from forensics.formats.trace._cut import HEAD_BYTES, Cut, Words, begins, cut, equal
from forensics.formats.trace._device import CALLS, WANTED
from forensics.formats.trace._event import Event, check, decoded_for_device
from forensics.formats.trace._layout import Layout
from forensics.formats.trace._rows import category_of
from forensics.formats.trace._times import Bools, Ints
from forensics.formats.trace.calls import QUIET_CALLS
from forensics.patterns import lazily

Kind = tuple[str, str]
#: Events of a block whose kind is not known yet and that are looked at, in the first block and in each later one.
_SAMPLES, _SAMPLES_MORE = 256, 16
_MOST_PATTERNS = 48
#: As long as a trace gave no row, these first events of a block are decoded: they tell the unit of its stamps.
_FIRST_EVENTS = 64
_END_BYTES = 200
_LASTING = lazily(rb'\A\{\s*"ph"\s*:\s*"(X)"\s*,\s*"cat"\s*:\s*"([a-zA-Z_]+)"\s*,\s*"name"\s*:\s*"')
_NAME = lazily(rb'(\w+)"')
_INSTANT = lazily(rb'\A\{\s*"ph"\s*:\s*"([iIR])"\s*,\s*"cat"\s*:\s*"([a-zA-Z_]+)"\s*,')
_FLOW = lazily(rb'\A\{\s*"ph"\s*:\s*"([stf])"\s*,\s*"id"\s*:\s*')
_FLOW_END = lazily(rb',\s*"cat"\s*:\s*"(\w+)"\s*,\s*"name"\s*:\s*"\w*"(?:\s*,\s*"bp"\s*:\s*"e")?\s*\}\Z')


class Pattern(Struct, frozen=True):
    """Events that may be left out: how they begin and end, and bytes with which a name that follows must not begin."""

    kind: Kind
    head: bytes
    end: bytes = b""
    firsts: bytes = b""

    def matching(self, block: Cut, rows: Ints, heads: Words) -> Ints:
        """Those of the rows, with their heads, that are such events."""
        chosen = rows[begins(heads, self.head)]
        if self.firsts:
            wanted = np.zeros(256, np.bool_)
            wanted[list(self.firsts)] = True
            chosen = chosen[~wanted[np.frombuffer(block.data, np.uint8)[block.begin[chosen] + len(self.head)]]]
        if self.end:
            chosen = chosen[equal(block.data, block.end[chosen] - len(self.end), self.end)]
        return chosen


class Kept(Struct, frozen=True):
    """What was decoded of a block of `count` events: `order` are their places in it; `left` counts the others.

    `listed` are the bytes of those that were decoded, as a JSON list.
    """

    events: list[Event]
    listed: bytes
    order: Ints
    count: int
    left: Tally[Kind]


class Skipper(Struct):
    """Decodes blocks of one trace; the kinds that may be left out are learned from its own events.

    `started`: the trace gave rows already.
    """

    patterns: list[Pattern] = field(default_factory=list[Pattern])
    started: bool = False
    _looked: bool = False

    def decoded(self, data: bytes, stop: int, layout: Layout | None) -> Kept | None:
        """The events in `data[:stop]` that may be wanted; None where the layout does not allow to tell.

        Raises `REFUSED` when what must be decoded is not of the usual shape.
        """
        block = cut(data, stop, layout) if layout is not None else None
        if block is None:
            return None
        check(data[:stop])
        skip, left = self._skipped(block)
        order = np.flatnonzero(~skip)
        listed = block.listed(order)
        events = decoded_for_device(listed)
        return Kept(events, listed, order, len(skip), left) if len(events) == len(order) else None

    def _skipped(self, block: Cut) -> tuple[Bools, Tally[Kind]]:
        """Which events are left out, and how many of each kind."""
        skip, left = np.zeros(len(block.begin), np.bool_), Tally[Kind]()
        may = block.whole & (block.begin + HEAD_BYTES <= len(block.data))
        if not self.started:
            may[:_FIRST_EVENTS] = False
        rows = np.flatnonzero(may)
        heads = block.heads(rows)

        def leave(pattern: Pattern) -> None:
            found = pattern.matching(block, rows, heads)
            left[pattern.kind] += int((~skip[found]).sum())
            skip[found] = True

        for pattern in self.patterns:
            leave(pattern)
        rest = np.flatnonzero(may & ~skip)
        most = _SAMPLES_MORE if self._looked else _SAMPLES
        self._looked = self._looked or self.started
        for at in rest[:: max(len(rest) // most, 1)].tolist():
            if not skip[at] and (pattern := self._learned(block.data[block.begin[at] : block.end[at]])) is not None:
                leave(pattern)
        return skip, left

    def _learned(self, event: bytes) -> Pattern | None:
        """The pattern of this event, where it may be left out and is not known yet."""
        pattern = pattern_of(event) if len(self.patterns) < _MOST_PATTERNS else None
        if pattern is None or len(pattern.head) >= HEAD_BYTES or pattern in self.patterns:
            return None
        self.patterns.append(pattern)
        return pattern


def pattern_of(event: bytes) -> Pattern | None:
    """What all events of the kind of this one have, where they may be left out."""
    if (found := _LASTING.match(event)) is not None:
        return _lasting(event, found)
    if (found := _INSTANT.match(event)) is not None:
        return Pattern((found[1].decode(), found[2].decode()), found[0])
    if (found := _FLOW.match(event)) is not None and (end := _FLOW_END.search(event[-_END_BYTES:])) is not None:
        return Pattern((found[1].decode(), end[1].decode()), found[0], end=end[0])
    return None


def _lasting(event: bytes, found: re.Match[bytes]) -> Pattern | None:
    """Of calls their whole name is part of the pattern; of operators and frames any but those that may be marks."""
    kind = found[1].decode(), found[2].decode()
    spelled = category_of(kind[1])
    if spelled in CALLS:
        name = _NAME.match(event, found.end())
        return Pattern(kind, event[: name.end()]) if name and name[1].decode() in QUIET_CALLS else None
    if spelled not in WANTED:
        return None
    return Pattern(kind, found[0], firsts=b"\\" + "".join(one[0] for one in WANTED[spelled]).encode())
