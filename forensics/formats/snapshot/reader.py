"""Memory snapshots of torch's caching allocator: pickles of `_dump_snapshot`, lists of segments, and JSON of the same.

Every version from torch 1.13 on and torch_npu is read, in pickle protocols 2 to 5. Nothing is unpickled: opcodes are
read one by one, only those that build plain data are known, and none is ever called. A file that is cut or damaged
gives the part before the damage, to the last whole event. Recorded events become the table `allocs`, the state at the
end `segments` and `blocks`, stacks `stacks` and `frames`, the allocator's settings facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.facts import write_facts
from forensics.formats.snapshot._columns import BATCH, EventColumns
from forensics.formats.snapshot._segments import StateRows, state_rows
from forensics.formats.snapshot._stacks import StackBook
from forensics.formats.snapshot._stream import Streamed, stream
from forensics.io.budget import Budget, WorkExceeded
from forensics.io.pickle.ops import foreign
from forensics.io.tolerant_json import as_list, as_object, loads

_MAGIC = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_NAMES = ("*.pickle", "*.pkl", "*.json", "*snapshot*")
_HEAD_BYTES = 4096
#: Within the first items of a pickled snapshot, or of a list of segments: its keys as pickled strings.
_PICKLED = lazily(rb"[\x8cX](?:.|.{4})(?:segments|device_traces|total_size|segment_type|allocated_size)", re.DOTALL)
_JSON = lazily(rb'^\s*(?:\{\s*"(?:segments|device_traces)"\s*:\s*\[|\[\s*\{[^{}\[\]]*"total_size"\s*:)')
PREFIX = "memory_snapshot"
_SETTINGS = 200
_I63 = 1 << 63
#: Units of one annotation: its row takes 2 µs.
_ROW_UNITS = 16


@ingester(
    "memory_snapshot",
    version=1,
    sniff=Sniff(glob=_NAMES, magic=_MAGIC),
    emits=("allocs", "segments", "blocks", "stacks", "frames", "annotations", "facts"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one snapshot.

    Raises `NotMine` when neither its keys nor its layout are those of a memory snapshot; `InputError` when nothing of
    it could be read.
    """
    head = opened.text_head(_HEAD_BYTES) if opened.compression else opened.head(_HEAD_BYTES)
    if foreign(head) is None and _PICKLED.search(head):
        if opened.compression:
            raise InputError("a compressed memory snapshot is not read", help="expand it, then: forensics memory FILE")
        _pickled(opened, out, limits)
    elif _JSON.match(head) and b'"' in head:
        _json(opened, out, limits)
    else:
        raise NotMine("no memory snapshot")


def _pickled(opened: Opened, out: Out, limits: Limits) -> None:
    found = stream(opened.raw(), out, opened.budget, limits=limits)
    if found.error is not None and not found.columns.seq and not len(found.columns) and not _has_state(found):
        raise found.error
    _write(found, opened, out)


def _has_state(found: Streamed) -> bool:
    rest: object = found.rest
    segments = cast("dict[str, object]", rest).get("segments") if isinstance(rest, dict) else rest
    return isinstance(segments, list) and bool(cast("list[object]", segments))


def _json(opened: Opened, out: Out, limits: Limits) -> None:
    document = loads(b"".join(block.data for block in opened.blocks()), limits)
    stacks = StackBook(opened.budget)
    columns = EventColumns(out, stacks, min(BATCH, limits.batch_rows))
    if isinstance(document, dict):
        traces = cast("dict[str, object]", document).pop("device_traces", None)
        for device, trace in enumerate(as_list(traces)):
            for event in as_list(trace):
                columns.add(as_object(event), device)
    _write(Streamed(document, stacks, columns, opened.size_bytes, None), opened, out)


def _write(found: Streamed, opened: Opened, out: Out) -> None:
    """Write what is left beside the events, and the account of the file."""
    found.columns.flush()
    rest: object = found.rest
    document = as_object(rest)
    state = state_rows(document.get("segments") if isinstance(rest, dict) else rest, found.stacks)
    _account(found, state, opened, out)
    wrong = write_annotations(document, out, opened.budget)
    write_settings(document, out, _told(found, document, state), opened.budget)
    _losses(found, state, wrong, document, out)
    out.format(_band(found, document, state))
    for table, columns in (("segments", state.segments), ("blocks", state.blocks)):
        out.rows(table, columns)
    frames, stacks = found.stacks.columns()
    out.rows("frames", frames)
    out.rows("stacks", stacks)


def _account(found: Streamed, state: StateRows, opened: Opened, out: Out) -> None:
    """Account for the file; of a budget that ended among the segments, the share of those that became rows is read."""
    segments, blocks = len(state.segments["seq"]), len(state.blocks["seq"])
    records = found.columns.seq + segments + blocks
    if state.unread:
        out.account(read_bytes=found.end * segments // (segments + state.unread), records=records)
        return
    lost = opened.size_bytes - found.end
    why = (found.error.message if found.error else "behind the end of the snapshot") if lost else ""
    out.account(read_bytes=found.end, skipped_bytes=lost, reason=why, records=records)


def _told(found: Streamed, document: Mapping[str, object], state: StateRows) -> dict[str, object]:
    traces = document.get("device_traces")
    return {
        "complete": not state.unread and (found.error is None or _after_traces(document)),
        "events": found.columns.seq,
        "devices": len(cast("list[object]", traces)) if isinstance(traces, list) else None,
        "has_state": bool(state.segments["seq"]),
        "has_trace": "device_traces" in document or found.columns.seq > 0,
    }


def _after_traces(document: Mapping[str, object]) -> bool:
    """Whether a cut file has all of its events: something follows them."""
    keys = list(document)
    return "device_traces" in keys and "segments" in keys and keys[-1] != "device_traces"


def _losses(found: Streamed, state: StateRows, wrong: int, document: Mapping[str, object], out: Out) -> None:
    if found.error is not None:
        out.issue("snapshot-cut", f"{found.error.message}; what stands before is kept", byte=found.end)
    for code, words, count in found.flaws:
        out.issue(code, words, count=count)
    for name, count in found.columns.malformed.items():
        out.issue("event-malformed", f"events whose {name} is none of its kind", count=count)
    traces = document.get("device_traces")
    left = [one for one in cast("list[object]", traces) if one] if isinstance(traces, list) else []
    if left or (traces is not None and not isinstance(traces, list)):
        out.issue("event-malformed", "entries of device_traces that are no events", count=max(len(left), 1))
    if state.malformed:
        out.issue("segment-malformed", "segments or blocks without address, size or blocks", count=state.malformed)
    if wrong:
        out.issue("annotation-malformed", "annotations without a name", count=wrong)
    if found.stacks.malformed:
        out.issue("frame-malformed", "frames without a file name", count=found.stacks.malformed)


def _band(found: Streamed, document: Mapping[str, object], state: StateRows) -> str:
    if not isinstance(found.rest, dict):
        return "list of memory segments"
    kind = "memory snapshot" if found.columns.seq else "memory snapshot, state only"
    return (
        kind if "allocator_settings" in document or not state.segments["seq"] else f"{kind} of torch before 2.3 or NPU"
    )


# What a memory snapshot holds beside events and segments: allocator settings as facts, annotations as rows.


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
    write_facts(out, ((key, value, "memory") for key, value in rows))


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
