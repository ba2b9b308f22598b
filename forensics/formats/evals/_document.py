"""One document of evaluation results: its tasks, and what it says of each; a cut document gives its whole tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from forensics.errors import InputError
from forensics.formats.evals._places import EvalPlaces, eval_places
from forensics.io.tolerant_json import loads

Object = Mapping[str, object]
_MOST_MEMBERS = 10_000


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
