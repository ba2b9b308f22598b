"""Where keys of any depth stand in a JSON document, so that what is read from a parsed one has a line."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from forensics.formats.rows.json_records import key_of

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]', re.DOTALL)
_MOST_TOKENS, _DEEPEST = 4_000_000, 200
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Offsets:
    """Bytes at which keys begin, by their path from the root, and where the lines of the document end."""

    at: Mapping[Path, int] = field(default_factory=dict[Path, int])
    newlines: array[int] = field(default_factory=lambda: array("q"))

    def of(self, path: Path) -> tuple[int | None, int | None]:
        """Line (from 1) and byte of a key; None where it was not found."""
        at = self.at.get(path)
        return (None, None) if at is None else (bisect_right(self.newlines, at) + 1, at)


def offsets_of(data: bytes, wanted: Collection[Path]) -> Offsets:
    """Find the wanted keys; the last of two equal ones counts, as it does for a parser."""
    found: dict[Path, int] = {}
    path: list[str | int] = []  # one key for each open object, one index for each open list
    word, word_at = b"", 0
    for number, token in enumerate(_TOKEN.finditer(data)):
        if number > _MOST_TOKENS or len(path) > _DEEPEST:
            break
        text = token.group()
        if text[:1] == b'"':
            word, word_at = text, token.start()
        elif text == b":" and path:
            path[-1] = key_of(word)
            here = tuple(path)
            if here in wanted:
                found[here] = word_at
        elif text == b"{":
            path.append("")
        elif text == b"[":
            path.append(0)
        elif text in b"}]" and path:
            path.pop()
        elif text == b"," and path and isinstance(path[-1], int):
            path[-1] += 1
    return Offsets(found, array("q", (match.start() for match in re.finditer(rb"\n", data))))
