"""The state at the end of a memory snapshot: segments and their blocks, as torch writes them since 1.13."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct, field

from forensics.formats.snapshot._stacks import StackBook
from forensics.io.budget import WorkExceeded
from forensics.io.tolerant_json import as_list, as_object

#: Units of one segment or block: its row takes 5 µs.
_ROW_UNITS = 32
_SEGMENT = (
    "seq", "device", "addr", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type",
    "pool_owner", "pool", "is_expandable", "stack",
)  # fmt: skip
_BLOCK = ("seq", "device", "segment", "addr", "size", "requested_size", "state", "stack")
_MASK = (1 << 64) - 1
_I63 = 1 << 63


class StateRows(Struct):
    """Columns of `segments` and `blocks`, how many were none, and how many segments the budget left unread."""

    segments: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _SEGMENT})
    blocks: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _BLOCK})
    malformed: int = 0
    unread: int = 0


def state_rows(segments: object, stacks: StackBook) -> StateRows:
    """Turn a list of segments into rows; what is no segment or no block is counted and left out."""
    rows = StateRows()
    if not isinstance(segments, list):
        rows.malformed += segments is not None
        return rows
    found = cast("list[object]", segments)
    for at, one in enumerate(found):
        if not isinstance(one, dict):
            rows.malformed += 1
            continue
        try:
            _segment(cast("dict[str, object]", one), rows, stacks)
        except WorkExceeded:
            rows.unread = len(found) - at
            break
    return rows


def _segment(one: Mapping[str, object], rows: StateRows, stacks: StackBook) -> None:
    stacks.budget.charge(_ROW_UNITS)
    addr, total, blocks = _address(one.get("address")), _size(one.get("total_size")), one.get("blocks")
    if addr is None or total is None or not isinstance(blocks, list):
        rows.malformed += 1
        return
    seq = len(rows.segments["seq"])
    device = _device(one.get("device"))
    owner, pool = _pool(one.get("segment_pool_id"))
    kind, expandable = one.get("segment_type"), one.get("is_expandable")
    values = (
        seq, device, addr, total, *(_size(one.get(f"{name}_size")) for name in ("allocated", "active", "requested")),
        _address(one.get("stream")), kind if isinstance(kind, str) else None, owner, pool,
        expandable if isinstance(expandable, bool) else None, stacks.of(one.get("frames")),
    )  # fmt: skip
    for name, value in zip(_SEGMENT, values, strict=True):
        rows.segments[name].append(value)
    for block in cast("list[object]", blocks):
        stacks.budget.charge(_ROW_UNITS)
        size = _size(cast("dict[str, object]", block).get("size")) if isinstance(block, dict) else None
        if size is None:
            rows.malformed += 1
            continue
        addr = _block(cast("dict[str, object]", block), (seq, device, addr, size), rows, stacks)


def _block(
    one: Mapping[str, object], where: tuple[int, int | None, int, int], rows: StateRows, stacks: StackBook
) -> int:
    """Add a block and give the address behind it; up to torch 2.0 the address follows from the sizes before."""
    segment, device, running, size = where
    told = _address(one.get("address"))
    addr = running if told is None else told
    last = _last_use(one)
    state = one.get("state")
    requested = _size(one.get("requested_size"))
    if requested is None:
        requested = _size(last.get("real_size"))
    values = (
        len(rows.blocks["seq"]), device, segment, addr, size, requested, state if isinstance(state, str) else None,
        stacks.of(one.get("frames", last.get("frames"))),
    )  # fmt: skip
    for name, value in zip(_BLOCK, values, strict=True):
        rows.blocks[name].append(value)
    return (addr + size) & _MASK


def _last_use(block: Mapping[str, object]) -> Mapping[str, object]:
    """The newest entry of a block's history (up to torch 2.0), or nothing."""
    history = as_list(block.get("history"))
    return as_object(history[0]) if history else {}


def _address(value: object) -> int | None:
    return value & _MASK if isinstance(value, int) and -_I63 <= value <= _MASK else None


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _I63 else None


def _device(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 16 else None


def _pool(value: object) -> tuple[int | None, int | None]:
    pair = cast("Sequence[object]", value) if isinstance(value, tuple | list) else ()
    numbers = [one for one in pair[:3] if isinstance(one, int) and -_I63 <= one < _I63]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (None, None)
