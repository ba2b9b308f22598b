"""Lengths and fields of protobuf messages at many offsets at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Buffer = NDArray[np.uint8]

#: Behind the last row, so that a length may be looked at before it is judged.
PAD = bytes(16)
#: Tag of one part of a nested key.
NESTED = 0x12


class OddError(Exception):
    """The rows are not of the usual form."""


def passed(h: Buffer, at: Ints, end: Ints) -> Ints:
    """The end of each field that is no item.

    Raises:
        OddError: when one is no field of bytes, or runs over its end.
    """
    behind, fits = next_field(h, at, end)
    demand(fits)
    return behind


def next_field(h: Buffer, at: Ints, end: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Where each field ends, and whether it is a field of bytes that fits before `end`."""
    tag = h[at]
    length, begin = lengths(h, at + 1 + (tag >= 128))
    behind = begin + length
    return behind, ((tag & 7) == 2) & (behind <= end)


def lengths(h: Buffer, at: Ints) -> tuple[Ints, Ints]:
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
