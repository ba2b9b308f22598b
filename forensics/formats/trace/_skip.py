"""Passes over events of a trace that nobody asked for by their bytes, without decoding them.

The first bytes of all events of one kind are alike in a file: they tell phase, category and where the name begins. What
is not proven to be of a kind that may be left out, by that and by how it ends, is decoded. What is passed over is
checked to be JSON: damage may swallow the begin of a kernel, and a fifth of the time is its price. An event of a writer
that states a key twice is not met.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from forensics.formats.trace._device import CALLS, WANTED
from forensics.formats.trace._event import Event, check, decoded_for_device
from forensics.formats.trace._layout import Layout
from forensics.formats.trace._rows import category_of
from forensics.formats.trace._times import Bools, Ints
from forensics.formats.trace.calls import QUIET_CALLS
from forensics.patterns import lazily

Words = npt.NDArray[np.uint64]
#: As much of each event's begin is compared.
HEAD_BYTES = 128
_WORD = 8
_ALL = np.uint64((1 << 64) - 1)
_BRACE = 0x7B


# Where each event of a block begins and ends, and what its first bytes are, found for all events at once.
#
# An event begins at the mark that stands between any two of the file. Only the mark of a layout of several lines is
# used: it has a line end in it, so no string can hold it.


class Cut(Struct, frozen=True):
    """The events of a block; `whole` are those that end as events do and have nothing odd in them."""

    data: bytes
    begin: Ints
    end: Ints
    whole: Bools

    def listed(self, order: Ints) -> bytes:
        """The events at these places as a JSON list; neighbours stay together as they stand."""
        if not len(order):
            return b"[]"
        apart = np.flatnonzero(np.diff(order) != 1)
        first = self.begin[order[np.r_[0, apart + 1]]].tolist()
        last = self.end[order[np.r_[apart, -1]]].tolist()
        pieces = [self.data[a:b] for a, b in zip(first, last, strict=True)]
        pieces[0] = b"[" + pieces[0]
        pieces[-1] += b"]"
        return b",".join(pieces)

    def heads(self, rows: Ints) -> Words:
        """The first bytes of these events as words, one row a word."""
        if not len(rows):
            return np.zeros((HEAD_BYTES // _WORD, 0), np.uint64)
        every = np.ndarray((len(self.data) - HEAD_BYTES + 1,), f"V{HEAD_BYTES}", self.data, strides=(1,))
        return np.ascontiguousarray(every[self.begin[rows]].view("<u8").reshape(len(rows), -1).T)


def cut(data: bytes, stop: int, layout: Layout) -> Cut | None:
    """The events of `data[:stop]`; None where the layout does not tell."""
    mark, skip = layout.mark, layout.skip
    if b"\n" not in mark or stop < HEAD_BYTES:
        return None
    braces = np.flatnonzero(np.frombuffer(data, np.uint8, stop) == _BRACE)
    if not len(braces) or data[: braces[0]].strip():
        return None
    # the first event needs no mark, and what is near to the begin or the end has none that is whole
    before = np.zeros(len(braces), np.uint64)
    inside = slice(*np.searchsorted(braces, [_WORD, stop - len(mark) + skip + 1]))
    before[inside] = _words(data)[braces[inside] - (_WORD - 1)]
    marks = _ends(before, mark[: skip + 1])
    marks[0] = False
    if len(mark) > skip + 1 or skip >= _WORD:
        marks[marks] = equal(data, braces[marks] - skip, mark)
    begin = np.r_[braces[:1], braces[marks]]
    end = np.r_[begin[1:] - (skip - layout.left), stop]
    whole = equal(data, end - len(close := _close(mark, skip)), close)
    # the value of a key is no sign that the array, or the event, ended before its end was met
    odd = ~(marks | _ends(before, b": {") | _ends(before, b":{"))
    odd[0] = False
    whole[np.cumsum(marks)[odd]] = False
    return Cut(data, begin, end, whole)


def _close(mark: bytes, skip: int) -> bytes:
    """How the last line of an event begins: as deep as its first, with its brace."""
    return mark[mark.rfind(b"\n", 0, skip) : skip] + b"}"


def equal(data: bytes, at: Ints, literal: bytes) -> Bools:
    """Whether these bytes stand at each place; a place too near to the end of the data has them not."""
    words = _words(data)
    found = (at >= 0) & (at + max(len(literal), _WORD) <= len(data))
    for offset, value, mask in _numbers_within(literal):
        rows = np.flatnonzero(found)
        found[rows] = (words[at[rows] + offset] & mask) == value
    return found


def begins(heads: Words, literal: bytes) -> Ints:
    """Which of the heads begin with these bytes, at most `HEAD_BYTES`."""
    rows: Ints = np.flatnonzero(np.ones(heads.shape[1], np.bool_))
    for offset, value, mask in reversed(_numbers(literal)):  # what tells kinds apart stands behind what all have
        word = heads[offset // _WORD]
        word = word if len(rows) == len(word) else word[rows]
        rows = rows[(word if mask == _ALL else word & mask) == value]
        if not len(rows):
            break
    return rows


def _ends(words: Words, literal: bytes) -> Bools:
    """Whether each word of eight bytes ends with these, or with the last eight of them."""
    part = literal[-_WORD:]
    return (words >> np.uint64(8 * (_WORD - len(part)))) == _number(part)


def _words(data: bytes) -> Words:
    """The eight bytes from each place on, as numbers."""
    return np.ndarray((max(len(data) - _WORD + 1, 0),), "<u8", data, strides=(1,))


@lru_cache(maxsize=256)
def _numbers(literal: bytes) -> tuple[tuple[int, np.uint64, np.uint64], ...]:
    """The words of a literal: offset, value, and which of its bits count."""
    parts = [(at, literal[at : at + _WORD]) for at in range(0, len(literal), _WORD)]
    return tuple((at, _number(part), np.uint64((1 << 8 * len(part)) - 1)) for at, part in parts)


@lru_cache(maxsize=256)
def _numbers_within(literal: bytes) -> tuple[tuple[int, np.uint64, np.uint64], ...]:
    """As `_numbers`, but the last word ends where the literal ends, so that none is read past it."""
    if len(literal) < _WORD:
        return _numbers(literal)
    last = len(literal) - _WORD
    return tuple((at, _number(literal[at : at + _WORD]), _ALL) for at in (*range(0, last, _WORD), last))


def _number(part: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(part, "little"))


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
