"""One document of evaluation results: its tasks, and what it says of each; a cut document gives its whole tasks."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from forensics.errors import InputError
from forensics.formats.rows.json_records import key_of
from forensics.io.tolerant_json import loads

Object = Mapping[str, object]
_MOST_MEMBERS = 10_000


# Where the metrics of an evaluation stand in a JSON document, so each has a line; and what a cut one still holds.

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

    def _is_of_task(self) -> bool:
        """Whether the object that is open is that of a task."""
        return len(self.path) == len(self.wanted) + 2 and tuple(self.path[1:-1]) == self.wanted

    def opening(self, at: int) -> None:
        self.path.append(self.key)
        self.key = None
        if self._is_of_task():
            self.start = at

    def closing(self, end: int) -> None:
        if not self.path:
            return
        if self._is_of_task() and (task := self.path[-1]) is not None:
            self.places.spans[task] = (self.start, end)
        self.path.pop()
        self.key = None

    def colon(self) -> None:
        self.key = key_of(self.word)
        if self._is_of_task() and (task := self.path[-1]) is not None:
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


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document; `why` says that it is cut and only whole tasks were read, `lost_bytes` how much is not."""

    whole: Object
    tasks: Mapping[str, Object]
    places: EvalPlaces = field(default_factory=EvalPlaces)
    lost_bytes: int = 0
    why: str = ""

    def part(self, key: str) -> Object:
        """Object under a top-level key; empty when it is something else."""
        return as_object(self.whole.get(key))


def as_object(cell: object) -> Object:
    """The cell if it is an object, else an empty one."""
    return cast("dict[str, object]", cell) if isinstance(cell, dict) else {}


def parsed(data: bytes, under: str) -> Document:
    """Read a document whose tasks stand under one key, or the whole tasks of one that is cut."""
    where = eval_places(data, under)
    try:
        whole = as_object(loads(data))
    except InputError as error:
        return _salvaged(data, where, error.message)
    cells = as_object(whole.get(under))
    return Document(whole, {task: as_object(cell) for task, cell in cells.items()}, where)


def _salvaged(data: bytes, where: EvalPlaces, why: str) -> Document:
    tasks: dict[str, Object] = {}
    reached = 0
    for task, (start, end) in where.spans.items():
        try:
            tasks[task] = as_object(loads(data[start:end]))
        except InputError:
            continue
        reached = max(reached, end)
    return Document({}, tasks, where, len(data) - reached, why)


def members(groups: Object, task: str) -> tuple[str, ...]:
    """Tasks that a group is made of, in order, groups within it opened; empty for a task."""
    found: dict[str, None] = {}
    waiting, seen = [task], {task}
    while waiting and len(seen) < _MOST_MEMBERS:
        inside = groups.get(waiting.pop())
        for name in cast("list[object]", inside) if isinstance(inside, list) else []:
            if not isinstance(name, str) or name in seen:
                continue
            seen.add(name)
            if isinstance(groups.get(name), list) and groups.get(name):
                waiting.append(name)
            else:
                found[name] = None
    return tuple(sorted(found))
