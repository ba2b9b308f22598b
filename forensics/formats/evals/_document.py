"""One document of evaluation results: its tasks, and what it says of each; a cut document gives its whole tasks."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from forensics.errors import InputError
from forensics.formats.rows.json_records import Offsets, objects_under, offsets_of
from forensics.io.tolerant_json import as_list, as_object, loads

Object = Mapping[str, object]
_MOST_MEMBERS = 10_000


class Document(Struct, frozen=True):
    """A parsed document; `why` says that it is cut and only whole tasks were read, `lost_bytes` how much is not."""

    whole: Object
    tasks: Mapping[str, Object]
    under: str = ""
    places: Offsets = field(default_factory=Offsets)
    lost_bytes: int = 0
    why: str = ""

    def place(self, task: str, key: str) -> tuple[int | None, int | None]:
        """Line (from 1) and byte of a metric; None where it was not found."""
        return self.places.of((self.under, task, key))

    def part(self, key: str) -> Object:
        """Object under a top-level key; empty when it is something else."""
        return as_object(self.whole.get(key))


def parsed(data: bytes, under: str) -> Document:
    """Read a document whose tasks are under one key, or the whole tasks of a cut one."""
    whole, lost_bytes, why = as_object(None), 0, ""
    try:
        whole = as_object(loads(data))
        cells = as_object(whole.get(under))
    except InputError as error:
        cells, reached = _whole_tasks(data, under)
        lost_bytes, why = len(data) - reached, error.message
    tasks = {task: as_object(cell) for task, cell in cells.items()}
    wanted = {(under, task, key) for task, cell in tasks.items() for key in cell}
    return Document(whole, tasks, under, offsets_of(data, wanted), lost_bytes, why)


def _whole_tasks(data: bytes, under: str) -> tuple[Object, int]:
    """The tasks of a cut document that are whole, and where the last of them ends."""
    tasks: dict[str, object] = {}
    reached = 0
    for task, (start, end) in objects_under(data, under).items():
        try:
            tasks[task] = loads(data[start:end])
        except InputError:
            continue
        reached = max(reached, end)
    return tasks, reached


def members(groups: Object, task: str) -> tuple[str, ...]:
    """Tasks that a group is made of, in order, groups within it opened; empty for a task."""
    found: dict[str, None] = {}
    waiting, seen = [task], {task}
    while waiting and len(seen) < _MOST_MEMBERS:
        inside = groups.get(waiting.pop())
        for name in as_list(inside):
            if not isinstance(name, str) or name in seen:
                continue
            seen.add(name)
            if isinstance(groups.get(name), list) and groups.get(name):
                waiting.append(name)
            else:
                found[name] = None
    return tuple(sorted(found))
