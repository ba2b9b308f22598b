"""Rows of flight-recorder entries: one per collective that the rank enqueued, with its group, state and call site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct, field

from forensics.dialects.events import collectives
from forensics.formats.rows.metrics import INT64, int64
from forensics.formats.stacks.sites import MOST_FRAMES, Frame, site_of, stack_json
from forensics.io.budget import Budget, WorkExceeded
from forensics.io.tolerant_json import dumps

_CHARS = 200
_MOST_RANKS = 100_000
_MOST_SIZES, _MOST_DIMS = 64, 16
#: Text of stacks that one dump may fill; later entries keep their site only.
_STACK_CHARS = 32 << 20
#: Units of one entry, and of one frame, dimension or rank in it: its row takes 30 µs and 2 µs more for each of them.
_ENTRY_UNITS, _PART_UNITS = 128, 8
_STATES = ("scheduled", "started", "completed")


class Group(Struct, frozen=True):
    """A process group as one rank printed it; `ranks` are global ranks, empty where they are not known."""

    name: str
    desc: str = ""
    ranks: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """`name(description)`, the way in which a watchdog line prints it."""
        shown = self.desc if self.desc not in ("", "undefined", self.name) else ""
        return f"{self.name}({shown})" if shown else self.name


def whole(value: object) -> int | None:
    """An integer of 64 bits, also where it is printed as a string; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = int(value[:20])
        except ValueError:
            return None
    if isinstance(value, int):
        return value if value in INT64 else None
    return int64(value) if isinstance(value, float) else None


def _text(value: object) -> str:
    if isinstance(value, str):
        return value[:_CHARS]
    return str(value)[:_CHARS] if isinstance(value, int | float) else ""


def ranks_of(value: object) -> tuple[int, ...]:
    """Global ranks of a group, which a dump prints as the string `[0, 1]`."""
    if isinstance(value, str):
        inner = value[: 8 * _MOST_RANKS].strip().strip("[]")
        cells: Sequence[object] = [cell.strip() for cell in inner.split(",")] if inner else []
    elif isinstance(value, list):
        cells = cast("list[object]", value)
    else:
        return ()
    found = [whole(cell) for cell in cells[:_MOST_RANKS]]
    return tuple(rank for rank in found if rank is not None and 0 <= rank < 1 << 31)


def groups_of(config: object, budget: Budget) -> dict[str, Group]:
    """The groups of `pg_config` by name, as many as the budget allows."""
    found: dict[str, Group] = {}
    for key, value in cast("dict[object, object]", config).items() if isinstance(config, dict) else ():
        if isinstance(value, dict):
            cells = cast("dict[str, object]", value)
            ranks = cells.get("ranks")
            try:
                budget.charge(_PART_UNITS * _length(ranks))
            except WorkExceeded:
                break
            name = _text(cells.get("name")) or _text(key)
            found[name] = Group(name, _text(cells.get("desc")), ranks_of(ranks))
    return found


def _length(value: object) -> int:
    """Ranks that a list, or a text with one number in two characters, can hold."""
    if isinstance(value, str):
        return len(value) // 2
    return len(cast("list[object]", value)) if isinstance(value, list) else 0


def units_of(entry: Mapping[str, Any]) -> int:
    """Units of work that the row of an entry costs."""
    frames, sizes = entry.get("frames"), (entry.get("input_sizes"), entry.get("output_sizes"))
    parts = min(len(cast("list[object]", frames)), MOST_FRAMES) if isinstance(frames, list) else 0
    for shapes in sizes:
        for shape in cast("list[object]", shapes)[:_MOST_SIZES] if isinstance(shapes, list) else ():
            parts += min(len(cast("list[object]", shape)), _MOST_DIMS) if isinstance(shape, list) else 1
    return _ENTRY_UNITS + _PART_UNITS * parts


def group_of(entry: Mapping[str, Any], groups: Mapping[str, Group]) -> Group:
    """The group of one entry, with the ranks that `pg_config` gives it.

    A gloo dump names its one group by an empty string there; then that group's ranks are taken.
    """
    named = entry.get("process_group")
    pair = [_text(part) for part in cast("Sequence[object]", named)[:2]] if isinstance(named, list | tuple) else []
    name = pair[0] if pair else _text(entry.get("pg_name")) or _text(entry.get("pg_id"))
    desc = pair[1] if len(pair) > 1 else ""
    known = groups.get(name)
    if known is None and len(groups) == 1 and desc in ("default_pg", ""):
        known = groups.get("")
    return Group(name, desc or (known.desc if known else ""), known.ranks if known else ())


def _sizes(value: object) -> str | None:
    """A list of shapes as JSON; None for anything else."""
    if not isinstance(value, list):
        return None
    shapes: list[list[int]] = []
    for shape in cast("list[object]", value)[:_MOST_SIZES]:
        cells = cast("list[object]", shape)[:_MOST_DIMS] if isinstance(shape, list) else [shape]
        dims = [whole(cell) for cell in cells]
        if any(dim is None for dim in dims):
            return None
        shapes.append([dim for dim in dims if dim is not None])
    return dumps(shapes, compact=True).decode()


def frame_of(cell: Mapping[str, object]) -> Frame:
    """One frame of an entry's stack."""
    return Frame(_text(cell.get("name")), _text(cell.get("filename")), whole(cell.get("line")))


def _time(entry: Mapping[str, Any], name: str) -> int | None:
    """A time in unix nanoseconds; 0 stands for none, and the oldest dumps print microseconds."""
    found = whole(entry.get(f"{name}_ns"))
    if found is None and (micro := whole(entry.get(f"{name}_us"))):
        found = int64(micro * 1000)
    return found or None


class EntryRows(Struct):
    """Columns of the table `collectives`, filled entry by entry."""

    rank: int | None
    groups: Mapping[str, Group]
    columns: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    _left: int = _STACK_CHARS
    #: by identity, because a hash goes over all ranks; the tuple is kept so that its identity is
    _ranks: dict[int, tuple[tuple[int, ...], str]] = field(default_factory=dict[int, "tuple[tuple[int, ...], str]"])
    #: by identity, because the stacks of a dump share the frames that they have in common
    _frames: dict[int, tuple[object, Frame]] = field(default_factory=dict[int, "tuple[object, Frame]"])

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add one entry."""
        for name, cell in self._row(entry).items():
            self.columns.setdefault(name, []).append(cell)

    def _row(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        group = group_of(entry, self.groups)
        printed = _text(entry.get("profiling_name"))
        op, pair = collectives.parsed(printed)
        retired = entry.get("retired")
        state = _text(entry.get("state")).lower()
        frames = self._frames_of(entry.get("frames"))
        stack = stack_json(frames) if self._left > 0 else None
        self._left -= len(stack or "")
        dtypes = entry.get("input_dtypes") or entry.get("output_dtypes")
        first = cast("list[object]", dtypes)[0] if isinstance(dtypes, list) and dtypes else None
        done = retired is True and printed.startswith("gloo:")
        seq = whole(entry.get("collective_seq_id"))
        return {
            "rank": self.rank,
            "group": group.label,
            "group_size": len(group.ranks) or None,
            "ranks": self._ranks_json(group.ranks),
            "seq": whole(entry.get("seq_id")) if seq is None else seq,
            "op_id": whole(entry.get("op_id")),
            "p2p_seq": whole(entry.get("p2p_seq_id")),
            "op": op,
            "in_sizes": _sizes(entry.get("input_sizes")),
            "out_sizes": _sizes(entry.get("output_sizes")),
            "dtype": _text(first) or None,
            "state": "completed" if done else state if state in _STATES else None,
            "created_ns": _time(entry, "time_created"),
            "started_ns": _time(entry, "time_discovered_started"),
            "completed_ns": _time(entry, "time_discovered_completed"),
            "timeout_ms": whole(entry.get("timeout_ms")),
            "retired": retired if isinstance(retired, bool) else None,
            "site": site_of(frames),
            "stack": stack,
            "attrs": self._attrs(entry, group, printed, state, pair),
        }

    def _frames_of(self, value: object) -> list[Frame]:
        """Frames of one entry, innermost first."""
        found: list[Frame] = []
        for item in cast("list[object]", value)[:MOST_FRAMES] if isinstance(value, list) else ():
            if isinstance(item, dict):
                cell = cast("dict[str, object]", item)
                if id(cell) not in self._frames:
                    self._frames[id(cell)] = cell, frame_of(cell)
                found.append(self._frames[id(cell)][1])
        return found

    def _ranks_json(self, ranks: tuple[int, ...]) -> str | None:
        if not ranks:
            return None
        if id(ranks) not in self._ranks:
            self._ranks[id(ranks)] = ranks, dumps(ranks, compact=True).decode()
        return self._ranks[id(ranks)][1]

    def _attrs(
        self, entry: Mapping[str, Any], group: Group, printed: str, state: str, pair: tuple[int, int] | None
    ) -> str:
        said: dict[str, object] = {"op": printed, "state": state, "record_id": whole(entry.get("record_id"))}
        said |= {"pg_id": whole(entry.get("pg_id")), "thread": _text(entry.get("thread_id")) or None}
        if entry.get("is_p2p") is True:
            said["p2p"] = True
        if pair is not None:
            said |= {"src": self._global(pair[0], group), "dst": self._global(pair[1], group)}
        return dumps({k: v for k, v in said.items() if v is not None}, compact=True).decode()

    @staticmethod
    def _global(rank: int, group: Group) -> int:
        """A rank of the group as a global rank, where the group's members are known."""
        return group.ranks[rank] if 0 <= rank < len(group.ranks) else rank
