"""Where the records of a list stand inside a JSON document, so each number has a line; and what a cut one holds."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from forensics.errors import InputError
from forensics.io.tolerant_json import loads

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]', re.DOTALL)
#: A longer text is no number.
NUMBER_CHARS = 64
#: Beyond it, not every whole number is a float.
FLOAT_HOLDS = 1 << 53
_INT64 = range(-(1 << 63), 1 << 63)
_WHOLE = re.compile(r"\s*[-+]?\d+\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Places:
    """Spans of the records in a document, as begin and end offsets, and the offsets of its newlines."""

    data: bytes = field(default=b"", repr=False)
    spans: tuple[tuple[int, int], ...] = ()
    newlines: array[int] = field(default_factory=lambda: array("q"), repr=False)

    def line(self, at: int) -> int:
        """Line (from 1) of an offset."""
        return bisect_right(self.newlines, at) + 1

    def keys(self, record: int) -> Mapping[str, int]:
        """Offsets of the keys of a record, those of nested objects left out; empty for a record that is not there."""
        if record >= len(self.spans):
            return {}
        begin, end = self.spans[record]
        found: dict[str, int] = {}
        depth, word, word_at = 0, b"", 0
        for token in _TOKEN.finditer(self.data, begin, end):
            text = token.group()
            if text[:1] == b'"':
                word, word_at = text, token.start()
            elif text == b":" and depth == 1:
                found[key_of(word)] = word_at
            elif text in b"{[":
                depth += 1
            elif text in b"}]":
                depth -= 1
        return found

    def of(self, record: int, key: str) -> tuple[int | None, int | None]:
        """Line (from 1) and byte of a key of a record, or of the record itself."""
        at = self.keys(record).get(key)
        if at is None and record < len(self.spans):
            at = self.spans[record][0]
        return (None, None) if at is None else (self.line(at), at)


def key_of(word: bytes) -> str:
    """A key as the document gives it, from its quoted text."""
    if b"\\" in word:
        try:
            return str(loads(word))
        except InputError:
            pass
    return word[1:-1].decode("utf-8", "replace")


def record_of(text: bytes) -> dict[str, object] | None:
    """A line as the JSON object that it is, a byte-order mark before it left out; None for anything else."""
    text = text.strip().removeprefix(b"\xef\xbb\xbf")
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return None
    try:
        found = loads(text)
    except InputError:
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None


def number(cell: object) -> float | None:
    """A cell as a number: numbers, and strings that print one (`"nan"`, `"0.5"`, `"Infinity"`); else None.

    A whole number of 64 bits that no float can hold stays the integer that it is: it may be a step.
    """
    if isinstance(cell, float):
        return cell
    if isinstance(cell, int) and not isinstance(cell, bool):
        return _exact(cell)
    # Python reads 1_000 as a number, and no writer means it
    if isinstance(cell, str) and 0 < len(cell) < NUMBER_CHARS and "_" not in cell:
        try:
            found = float(cell)
        except ValueError:
            return None
        return found if -FLOAT_HOLDS < found < FLOAT_HOLDS or not _WHOLE.fullmatch(cell) else _exact(int(cell))
    return None


def _exact(whole: int) -> float:
    if -FLOAT_HOLDS < whole < FLOAT_HOLDS:
        return float(whole)
    if whole in _INT64:
        return whole
    try:
        return float(whole)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


@dataclass(slots=True)
class _Scan:
    """A walk over the tokens of a document; `inside` is true between the brackets of the wanted list."""

    wanted: bytes
    list_depth: int
    depth: int = 0
    inside: bool = False
    start: int = 0
    word: bytes = b""
    last_key: bytes = b""
    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def opening(self, text: bytes, at: int) -> None:
        self.depth += 1
        if self.depth == self.list_depth and text == b"[" and self.last_key == self.wanted:
            self.inside, self.spans = True, []
        elif self.inside and self.depth == self.list_depth + 1 and text == b"{":
            self.start = at

    def closing(self, text: bytes, end: int) -> None:
        if self.inside and self.depth == self.list_depth + 1 and text == b"}":
            self.spans.append((self.start, end))
        elif self.inside and self.depth == self.list_depth:
            self.inside = False
        self.depth -= 1


def places(data: bytes, key: str | None = None) -> Places:
    """Find the objects of the list under the top-level `key`, or of the list that the document is; one pass."""
    scan = _Scan(b'"' + key.encode() + b'"', 2) if key is not None else _Scan(b"", 1)
    for token in _TOKEN.finditer(data):
        text = token.group()
        if text[:1] == b'"':
            scan.word = text
        elif text == b":":
            if scan.depth == 1:
                scan.last_key = scan.word
        elif text in b"{[":
            scan.opening(text, token.start())
        elif text in b"}]":
            scan.closing(text, token.end())
    return Places(data, tuple(scan.spans), array("q", (match.start() for match in re.finditer(rb"\n", data))))


def records_before_damage(data: bytes, where: Places) -> tuple[list[object], int]:
    """The records that are whole, and how many bytes of the document they reach."""
    records: list[object] = []
    reached = 0
    for start, end in where.spans:
        try:
            record: object | None = loads(data[start:end])
        except InputError:
            record = None
        else:
            reached = end
        records.append(record)
    return records, reached
