"""Where the items of many history rows stand, found by the tag of their values; nothing is believed unchecked.

An item that every known writer writes is: tag, length, tag, length, key, `82 01`, length, value. Each place of `82 01`
is taken for the end of a key; that the items so found follow one another without a gap through a row proves the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forensics.formats.wandb._varints import NESTED, lengths, next_field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Buffer = NDArray[np.uint8]

_ITEM, _KEY = 0x0A, 0x0A
VALUE_LOW, VALUE_HIGH = 0x82, 0x01


def chained(h: Buffer, sizes: Ints) -> tuple[tuple[Ints, Ints, Ints, Ints, Ints], Ints]:
    """Row, key and value (offset and length) of every item of the rows that are proved, and the rows that are not.

    A row is not proved where a value, a length or a name holds the two bytes, where a key has several parts, or where
    it is no sound row: those are for another reader.

    Raises:
        OddError: when a length has more bytes than any has.
    """
    end = np.cumsum(sizes)
    tags = np.flatnonzero(h == VALUE_LOW)
    key_end = tags[h[tags + 1] == VALUE_HIGH]
    behind = np.searchsorted(key_end, end)
    row = np.repeat(np.arange(len(sizes), dtype=np.int64), np.diff(behind, prepend=0))
    value_len, value = lengths(h, key_end + 2)
    stop = value + value_len
    key, sound = _keys(h, _begins(stop, row, end - sizes), key_end, stop)
    proved = np.bincount(row[~sound], minlength=len(sizes)) == 0
    last = behind - 1
    proved &= np.diff(behind, prepend=0) > 0
    at = np.where(proved, stop[np.maximum(last, 0)], end) if len(stop) else end
    proved &= _only_others(h, at, end)
    kept = slice(None) if proved.all() else proved[row]
    cells = (row[kept], key[kept], (key_end - key)[kept], value[kept], value_len[kept])
    return cells, np.flatnonzero(~proved)


def _begins(stop: Ints, row: Ints, begins: Ints) -> Ints:
    """Where each item begins: behind the one before it, or where its row does."""
    begin = np.empty_like(stop)
    begin[1:] = stop[:-1]
    first = np.flatnonzero(np.diff(row, prepend=-1))
    begin[first] = begins[row[first]]
    return begin


def _keys(h: Buffer, begin: Ints, key_end: Ints, stop: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Where the key of each item begins, and whether the item is whole."""
    sound = begin < key_end
    begin = np.minimum(begin, key_end)
    sound &= h[begin] == _ITEM
    size, inside = lengths(h, begin + 1)
    sound &= inside + size == stop
    first = h[inside]
    sound &= (first == _KEY) | (first == NESTED)
    length, key = lengths(h, inside + 1)
    sound &= key + length == key_end
    return key, sound


def _only_others(h: Buffer, at: Ints, end: Ints) -> NDArray[np.bool_]:
    """Whether fields that are no items fill the rest of each row."""
    good = at <= end
    row = np.flatnonzero(at < end)
    at, end = at[row], end[row]
    while row.size:
        behind, fits = next_field(h, at, end)
        fits &= h[at] != _ITEM
        good[row[~fits]] = False
        live = fits & (behind < end)
        row, at, end = row[live], behind[live], end[live]
    return good
