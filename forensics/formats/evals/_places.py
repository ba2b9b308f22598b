"""Where the metrics of an evaluation stand in a JSON document, so each has a line; and what a cut one still holds."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

from forensics.formats.rows.json_records import key_of

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:]', re.DOTALL)
_MOST_TOKENS = 4_000_000


@dataclass(slots=True)
class EvalPlaces:
    """Offsets of `(task, key)`, and the span of each task's object, within one object of the document."""

    keys: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    spans: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    newlines: array[int] = field(default_factory=lambda: array("q"))

    def of(self, task: str, key: str) -> tuple[int | None, int | None]:
        """Line (from 1) and byte of a metric; None where it was not found."""
        at = self.keys.get((task, key))
        return (None, None) if at is None else (bisect_right(self.newlines, at) + 1, at)


@dataclass(slots=True)
class _Walk:
    """A walk over tokens; `path` holds the keys of the open objects, None for a list."""

    wanted: tuple[str, ...]
    path: list[str | None] = field(default_factory=list[str | None])
    word: bytes = b""
    word_at: int = 0
    key: str | None = None
    start: int = 0
    places: EvalPlaces = field(default_factory=EvalPlaces)

    def opening(self, at: int) -> None:
        self.path.append(self.key)
        self.key = None
        if tuple(self.path[1:-1]) == self.wanted and len(self.path) == len(self.wanted) + 2:
            self.start = at

    def closing(self, end: int) -> None:
        if not self.path:
            return
        task = self.path[-1]
        if len(self.path) == len(self.wanted) + 2 and tuple(self.path[1:-1]) == self.wanted and task is not None:
            self.places.spans[task] = (self.start, end)
        self.path.pop()
        self.key = None

    def colon(self) -> None:
        self.key = key_of(self.word)
        task = self.path[-1] if self.path else None
        if len(self.path) == len(self.wanted) + 2 and tuple(self.path[1:-1]) == self.wanted and task is not None:
            self.places.keys[task, self.key] = self.word_at


def eval_places(data: bytes, under: str | None) -> EvalPlaces:
    """Find the metrics of each task, tasks being the objects under the top-level key `under`, or the top-level ones."""
    walk = _Walk((under,) if under is not None else ())
    for number, token in enumerate(_TOKEN.finditer(data)):
        if number > _MOST_TOKENS or len(walk.path) > 200:
            break
        text = token.group()
        if text[:1] == b'"':
            walk.word, walk.word_at = text, token.start()
        elif text == b":":
            walk.colon()
        elif text in b"{[":
            walk.opening(token.start())
        else:
            walk.closing(token.end())
    walk.places.newlines = array("q", (found.start() for found in re.finditer(rb"\n", data)))
    return walk.places
