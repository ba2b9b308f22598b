"""Where the records of a list stand inside a JSON document, so each number has a line; and what a cut one holds."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from forensics.errors import InputError
from forensics.io.tolerant_json import loads

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]', re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)\Z", re.IGNORECASE)
_NONE: Mapping[tuple[int, str], int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Places:
    """Spans of the records, and offsets of their keys; lines are looked up in the offsets of the newlines."""

    spans: tuple[tuple[int, int], ...] = ()
    keys: Mapping[tuple[int, str], int] = field(default_factory=lambda: _NONE)
    newlines: tuple[int, ...] = field(default=(), repr=False)

    def of(self, record: int, key: str) -> tuple[int | None, int | None]:
        """Line (from 1) and byte of a key of a record, or of the record itself."""
        at = self.keys.get((record, key))
        if at is None and record < len(self.spans):
            at = self.spans[record][0]
        return (None, None) if at is None else (bisect_right(self.newlines, at) + 1, at)


def number(cell: object) -> float | None:
    """A cell as a number: numbers, and strings that print one (`"nan"`, `"0.5"`, `"Infinity"`); else None."""
    if isinstance(cell, bool):
        return None
    if isinstance(cell, (int, float)):
        try:
            return float(cell)
        except OverflowError:
            return float("inf") if cell > 0 else float("-inf")
    if isinstance(cell, str) and len(cell) < 64 and _NUMBER.match(cell.strip()):
        return float(cell)
    return None


@dataclass(slots=True)
class _Scan:
    """A walk over the tokens of a document; `inside` is true between the brackets of the wanted list."""

    wanted: bytes
    depth: int = 0
    inside: bool = False
    start: int = 0
    word: bytes = b""
    word_at: int = 0
    last_key: bytes = b""
    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    keys: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])

    def opening(self, text: bytes, at: int) -> None:
        self.depth += 1
        if self.depth == 2 and text == b"[" and self.last_key == self.wanted:
            self.inside, self.spans, self.keys = True, [], {}
        elif self.inside and self.depth == 3 and text == b"{":
            self.start = at

    def closing(self, text: bytes, end: int) -> None:
        if self.inside and self.depth == 3 and text == b"}":
            self.spans.append((self.start, end))
        elif self.inside and self.depth == 2:
            self.inside = False
        self.depth -= 1

    def colon(self) -> None:
        if self.depth == 1:
            self.last_key = self.word
        elif self.inside and self.depth == 3:
            self.keys[len(self.spans), self.word[1:-1].decode("utf-8", "replace")] = self.word_at


def places(data: bytes, key: str) -> Places:
    """Find the objects of the list under the top-level `key`; one pass, whatever the document holds."""
    scan = _Scan(b'"' + key.encode() + b'"')
    for token in _TOKEN.finditer(data):
        text = token.group()
        if text[:1] == b'"':
            scan.word, scan.word_at = text, token.start()
        elif text == b":":
            scan.colon()
        elif text in b"{[":
            scan.opening(text, token.start())
        elif text in b"}]":
            scan.closing(text, token.end())
    newlines = tuple(match.start() for match in re.finditer(rb"\n", data))
    return Places(tuple(scan.spans), scan.keys, newlines)


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
