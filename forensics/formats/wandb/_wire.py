"""Where the items of many history rows are: the n-th items of all rows are found together.

All rows are bytes of one buffer. Nothing is read beyond a row: every length is held against the end of what holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Buffer = NDArray[np.uint8]

#: Behind the last row, so that a length may be looked at before it is judged.
PAD = bytes(16)
#: Tags: an item, its key, one part of a nested key, and the two bytes of its value.
_ITEM, _KEY, _NESTED, _VALUE_LOW, _VALUE_HIGH = 0x0A, 0x0A, 0x12, 0x82, 0x01
#: Rows so much shorter than their longest one are not worth a level each.
_LEVELS, _FEW = 256, 8
_WORD_BYTES = 8
#: Odd multipliers with well-spread bits (from the finaliser of MurmurHash3).
_MIX, _LAST_MIX = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


class OddError(Exception):
    """The rows are not of the usual form."""


class Cells(Struct, frozen=True):
    """Items of all rows in order: row, key and value (offset and length in the buffer)."""

    row: Ints
    key_at: Ints
    key_len: Ints
    value_at: Ints
    value_len: Ints


def cells_of(h: Buffer, sizes: Ints) -> Cells:
    """Items of rows of these sizes, one behind the other and `PAD` behind the last.

    Raises `OddError` when a row is not what every known writer writes.
    """
    end = np.cumsum(sizes)
    row, at = np.arange(len(sizes), dtype=np.int64), end - sizes
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
            at[other] = _passed(h, at[other], end[other])
            some = np.flatnonzero(is_item)
            if some.size:
                found, at[some] = _items(h, at[some], end[some])
                parts.append((row[some], *found))
    if not parts:
        raise OddError
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0].astype(np.uint16), kind="stable")
    return Cells(*(column[order] for column in columns))


def _items(h: Buffer, at: Ints, end: Ints) -> tuple[tuple[Ints, Ints, Ints, Ints], Ints]:
    """Key and value of the item that begins at each offset, and where it ends."""
    size, inside = _lengths(h, at + 1)
    stop = inside + size
    demand((stop <= end) & (size > 0))
    first = h[inside]
    demand((first == _KEY) | (first == _NESTED))
    length, key = _lengths(h, inside + 1)
    key_end = key + length
    demand(key_end < stop)
    more = np.flatnonzero(h[key_end] != _VALUE_LOW)
    key[more] = inside[more]  # several parts: the span keeps their framing
    while more.size:
        tag = h[key_end[more]]
        demand((tag == _KEY) | (tag == _NESTED))
        length, begin = _lengths(h, key_end[more] + 1)
        key_end[more] = begin + length
        demand(key_end[more] < stop[more])
        more = more[h[key_end[more]] != _VALUE_LOW]
    demand(h[key_end + 1] == _VALUE_HIGH)
    value_len, value = _lengths(h, key_end + 2)
    demand(value + value_len == stop)
    return (key, key_end - key, value, value_len), stop


def _passed(h: Buffer, at: Ints, end: Ints) -> Ints:
    """The end of each field that is no item; `OddError` when one is no field of bytes, or runs over its end."""
    tag = h[at]
    length, begin = _lengths(h, at + 1 + (tag >= 128))
    demand(((tag & 7) == 2) & (begin + length <= end))
    return begin + length


def _lengths(h: Buffer, at: Ints) -> tuple[Ints, Ints]:
    """Varint at each offset, and the offsets behind them."""
    value = h[at].astype(np.int64)
    behind = at + 1
    more = np.flatnonzero(value >= 128)
    value[more] &= 127
    shift = 7
    while more.size:
        if shift > 28:
            raise OddError
        byte = h[behind[more]].astype(np.int64)
        value[more] |= (byte & 127) << shift
        behind[more] += 1
        more = more[byte >= 128]
        shift += 7
    return value, behind


def demand(holds: NDArray[np.bool_]) -> None:
    """Raise `OddError` where one does not hold."""
    if not holds.all():
        raise OddError


def key_hashes(text: Buffer, cells: Cells) -> NDArray[np.uint64]:
    """A hash of all bytes of each key."""
    at, size = cells.key_at, cells.key_len
    words = np.lib.stride_tricks.sliding_window_view(text, _WORD_BYTES)
    out = size.astype(np.uint64)
    for begin in range(0, int(size.max()), _WORD_BYTES):
        live = np.flatnonzero(size > begin) if begin else slice(None)
        word = np.ascontiguousarray(words[at[live] + begin]).view("<u8")[:, 0]
        over = np.maximum(begin + _WORD_BYTES - size[live], 0).astype(np.uint64) * np.uint64(8)
        out[live] = (out[live] ^ (word << over)) * _MIX
        out[live] ^= out[live] >> np.uint64(32)
    return out * _LAST_MIX
