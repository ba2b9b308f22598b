"""Where each event of a block begins and ends, and what its first bytes are, found for all events at once.

An event begins at the mark that stands between any two of the file. Only the mark of a layout of several lines is used:
it has a line end in it, so no string can hold it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from forensics.formats.trace._layout import Layout
from forensics.formats.trace._times import Bools, Ints

Words = npt.NDArray[np.uint64]
#: As much of each event's begin is compared.
HEAD_BYTES = 128
_WORD = 8
_ALL = np.uint64((1 << 64) - 1)
_BRACE = 0x7B


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
