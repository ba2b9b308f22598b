"""What a memory snapshot holds beside events and segments: allocator settings as facts, annotations as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from forensics.formats.rows.out import Out
from forensics.io.budget import Budget, WorkExceeded
from forensics.io.tolerant_json import dumps

PREFIX = "memory_snapshot"
_SETTINGS = 200
_I63 = 1 << 63
#: Units of one annotation: its row takes 2 µs.
_ROW_UNITS = 16


def write_settings(document: Mapping[str, object], out: Out, told: Mapping[str, object], budget: Budget) -> None:
    """Write the allocator's settings and what was `told` of the recording as facts of the family `memory`."""
    rows = [(f"{PREFIX}.{key}", value) for key, value in told.items()]
    try:
        for key, value in _settings(document):
            if len(rows) == _SETTINGS:
                break
            budget.visit(value)
            if _plain(value):
                rows.append((key, value))
    except WorkExceeded:
        pass  # the sink states it
    out.rows(
        "facts",
        {
            "key": [key for key, _ in rows],
            "value": [dumps(value, compact=True).decode() for _, value in rows],
            "family": ["memory"] * len(rows),
        },
    )


def _settings(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    rings = ("trace_alloc_overflowed", "trace_alloc_max_entries")
    yield from ((f"{PREFIX}.{key}", document[key]) for key in rings if key in document)
    yield from _leaves(f"{PREFIX}.allocator_settings", document.get("allocator_settings"))


def _leaves(prefix: str, value: object, depth: int = 0) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and depth < 3:
        for key, inner in cast("dict[object, object]", value).items():
            yield from _leaves(f"{prefix}.{str(key)[:200]}", inner, depth + 1)
    else:
        yield prefix, value


def _plain(value: object) -> bool:
    if isinstance(value, list):
        return len(cast("list[object]", value)) <= 1024 and all(
            isinstance(one, str | int | float | bool | None) for one in cast("list[object]", value)
        )
    return isinstance(value, str | int | float | bool | None)


def write_annotations(document: Mapping[str, object], out: Out, budget: Budget) -> int:
    """Write the annotations (optimizer steps, profiler steps, collectives…) and give how many were none."""
    found = document.get("external_annotations")
    if not isinstance(found, list):
        return int(found is not None)
    columns: dict[str, list[Any]] = {"seq": [], "device": [], "t_ns": [], "name": [], "stage": []}
    wrong = 0
    for one in cast("list[object]", found):
        try:
            budget.charge(_ROW_UNITS)
        except WorkExceeded:
            break  # the sink states it
        row = _annotation(one)
        if row is None:
            wrong += 1
            continue
        for key, value in zip(columns, (len(columns["seq"]), *row), strict=True):
            columns[key].append(value)
    out.rows("annotations", columns)
    return wrong


def _annotation(one: object) -> tuple[int | None, int | None, str, str | None] | None:
    if not isinstance(one, dict):
        return None
    row = cast("dict[str, object]", one)
    name, stage, device, time = (row.get(key) for key in ("name", "stage", "device", "time_us"))
    if not isinstance(name, str):
        return None
    return (
        device if isinstance(device, int) and 0 <= device < 1 << 16 else None,
        time * 1000 if isinstance(time, int) and 0 <= time < _I63 // 1000 else None,
        name,
        stage if isinstance(stage, str) else None,
    )
