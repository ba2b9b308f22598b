"""Lines of a log's head that come again further down: a process of the same program began anew in the same file.

Only the fact is reported, one event (`head-again`) for each such line with its number in the head; whether it is a
restart is decided where all stores of the run are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from forensics.patterns import lazily

if TYPE_CHECKING:
    from forensics.dialects._lines import Cut

#: The head: so many bytes at most, of which so many lines are looked for.
_HEAD_BYTES, _LINES = 8192, 4
#: Each of them is reported so often.
MOST = 1000
#: A time and what stands around it, also as the first field of a JSON line; two words; a fraction, as records of a loss
#: have.
_STAMP = lazily(
    rb"^(?:\{\s*\"[\w@.-]{1,20}\":\s*\"?[\d:T.,Z+ -]{8,40}\"?,\s*|[\s\d\[\](){}:.,/TZ+-]*(?:[A-Z]{4,8}\b)?[\s|\]:-]*)"
)
_WORDS = lazily(rb"[A-Za-z]{3,}[^A-Za-z]+[A-Za-z]{3,}")
_FRACTION = lazily(rb"\d\.\d|\d/\d|\d%")
#: An error is no head: another one begins like it. Nor is torchrun's table of failures, one block for each worker.
_ERRORS = (b"Traceback (most recent call last)", b") local_rank: ", b" (local_rank: ")
#: Nor is what a step says of numbers that it lost.
_LOST = lazily(rb"(?i)\b(?:nan|inf)\b|non-?finite")
#: A Python warning takes two lines; the second, its source line, is no sign of its own.
_WARNS = lazily(rb":\d+: \w*Warning: ")
_LEAST_BYTES = 12


class Heads(Struct):
    """The lines of a file's head, learned from its first block, and how often each came again."""

    _lines: tuple[bytes, ...] | None = None
    counts: list[int] = field(default_factory=list[int])

    def begin_anew(self) -> None:
        """Count from nothing again."""
        self.counts = [0] * len(self.counts)

    def feed(self, cut: Cut) -> list[dict[str, Any]]:
        """Give the places of a block at which a line of the head comes again, as rows of events."""
        data, skip = cut.data, 0
        if self._lines is None:
            head = data[:_HEAD_BYTES]
            self._lines, skip = _head_of(head)
            self.counts = [0] * len(self._lines)
        found = {at: number for number, line in enumerate(self._lines) for at in self._again(number, line, data, skip)}
        if not found:
            return []
        places = sorted(found)
        rows = cut.around(np.asarray(places, np.int64)).iter_rows(named=True)
        return [_event(row, found[at]) for row, at in zip(rows, places, strict=True)]

    def _again(self, number: int, line: bytes, data: bytes, skip: int) -> Iterator[int]:
        """Places of one line in a block, behind a time of day or nothing."""
        at = data.find(line + b"\n", skip)
        while at >= 0 and self.counts[number] < MOST:
            begin = data.rfind(b"\n", 0, at) + 1
            if _bare(data[begin : at + len(line)]) == line:
                self.counts[number] += 1
                yield at
            at = data.find(line + b"\n", at + len(line))


def _head_of(head: bytes) -> tuple[tuple[bytes, ...], int]:
    """The first telling lines of a file, up to its first record or the first that comes again; and where they end.

    A line that comes again within the head itself does not count where there are others: one process prints it twice.
    """
    every: list[tuple[bytes, int]] = []
    at, warned = 0, False
    for raw in head.splitlines(keepends=True)[:-1]:
        line = _bare(raw.rstrip(b"\n"))
        at += len(raw)
        is_its_source, warned = warned and raw.startswith(b"  "), bool(_WARNS.search(raw))
        if is_its_source:
            continue
        again = any(line == other for other, _ in every)
        if again:
            every = [other for other in every if other[0] != line] or every
        over = len(every) == _LINES or again or (every and _FRACTION.search(line))
        if over or _LOST.search(line) or any(error in raw for error in _ERRORS):
            break
        if len(line) >= _LEAST_BYTES and _WORDS.search(line):
            every.append((line, at))
    return tuple(line for line, _ in every), max((end for _, end in every), default=0)


def _bare(line: bytes) -> bytes:
    return line[_STAMP.match(line).end() :]  # pyright: ignore[reportOptionalMemberAccess] - it matches nothing, too


def _event(row: dict[str, Any], number: int) -> dict[str, Any]:
    place = {name: row[name] for name in ("seq", "line", "byte")}
    named = {"rank": None, "step": None, "level": "info", "code": "head-again", "text": row["text"][:400]}
    attrs = f'{{"role":"context","shape":"","head":"{number}"}}'
    return {**place, **named, "attrs": attrs, "stamped": row["text"][:160]}
