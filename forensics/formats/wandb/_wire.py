"""Where the items of many history rows stand: the n-th items of all rows are found together.

All rows are bytes of one buffer. Nothing is read beyond a row: every length is held against the end of what holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forensics.formats.wandb._chain import VALUE_HIGH, VALUE_LOW, chained
from forensics.formats.wandb._varints import NESTED, OddError, demand, lengths, passed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Buffer = NDArray[np.uint8]

_ITEM, _KEY = 0x0A, 0x0A
#: Rows of which one is this much longer than the others are not worth a level each.
_LEVELS, _FEW = 256, 8


@dataclass(frozen=True, slots=True)
class Cells:
    """Items of all rows in order: row, key and value (offset and length in the buffer)."""

    row: Ints
    key_at: Ints
    key_len: Ints
    value_at: Ints
    value_len: Ints


def cells_of(h: Buffer, sizes: Ints) -> Cells:
    """Items of rows of these sizes, one behind the other and `PAD` behind the last.

    Raises:
        OddError: when a row is not what every known writer writes.
    """
    try:
        found, rest = chained(h, sizes)
    except OddError:
        return _by_levels(h, sizes, np.arange(len(sizes), dtype=np.int64))
    if not rest.size:
        return Cells(*found)
    others = _by_levels(h, sizes, rest)
    return _in_order([found, (others.row, others.key_at, others.key_len, others.value_at, others.value_len)])


def _by_levels(h: Buffer, sizes: Ints, row: Ints) -> Cells:
    """Items of some rows: the n-th ones of all of them together."""
    end = np.cumsum(sizes)[row]
    at = end - sizes[row]
    parts: list[tuple[Ints, ...]] = []
    while True:
        live = at < end
        if not live.all():
            row, at, end = row[live], at[live], end[live]
        if not at.size:
            break
        if len(parts) > _LEVELS and at.size < _FEW:
            raise OddError
        tag = h[at]
        is_item = tag == _ITEM
        if is_item.all():
            found, at = _items(h, at, end)
            parts.append((row, *found))
        else:
            other = np.flatnonzero(~is_item)
            at[other] = passed(h, at[other], end[other])
            some = np.flatnonzero(is_item)
            if some.size:
                found, at[some] = _items(h, at[some], end[some])
                parts.append((row[some], *found))
    if not parts:
        raise OddError
    return _in_order(parts)


def _in_order(parts: list[tuple[Ints, ...]]) -> Cells:
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0].astype(np.uint16), kind="stable")
    return Cells(*(column[order] for column in columns))


def _items(h: Buffer, at: Ints, end: Ints) -> tuple[tuple[Ints, Ints, Ints, Ints], Ints]:
    """Key and value of the item that begins at each offset, and where it ends."""
    size, inside = lengths(h, at + 1)
    stop = inside + size
    demand((stop <= end) & (size > 0))
    first = h[inside]
    demand((first == _KEY) | (first == NESTED))
    length, key = lengths(h, inside + 1)
    key_end = key + length
    demand(key_end < stop)
    more = np.flatnonzero(h[key_end] != VALUE_LOW)
    key[more] = inside[more]  # several parts: the span keeps their framing
    while more.size:
        tag = h[key_end[more]]
        demand((tag == _KEY) | (tag == NESTED))
        length, begin = lengths(h, key_end[more] + 1)
        key_end[more] = begin + length
        demand(key_end[more] < stop[more])
        more = more[h[key_end[more]] != VALUE_LOW]
    demand(h[key_end + 1] == VALUE_HIGH)
    value_len, value = lengths(h, key_end + 2)
    demand(value + value_len == stop)
    return (key, key_end - key, value, value_len), stop
