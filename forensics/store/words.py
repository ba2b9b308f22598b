"""Numbers by the million in 32 bits, each beside how it is read: text prints few digits, a device counts with 24 bits.

A word is a whole number of thousandths, say, or a number of single precision, or the place of a number that comes often
and has more digits than that, as a size that was printed in another unit.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Powers of ten that 64 bits hold exactly: what is divided by one is the number that its digits name.
_POWERS = 10.0 ** np.arange(11)
#: Kinds of words beside the digits behind the point: of single precision, and places among `often`.
SINGLE, OFTEN = len(_POWERS), len(_POWERS) + 1
_LARGEST = np.iinfo(np.int32).max
#: A number is held beside the words where each is that of so many rows.
_REPEATED = 16
#: So many numbers are read at a time: their powers of ten take as much memory as they do.
_PIECE = 1_000_000


class Worded(Struct, frozen=True, eq=False):
    """`words` and their `kinds`, one for each number, and the numbers of which some words are the places."""

    words: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    often: Floats


def worded(values: Floats) -> Worded | None:
    """Give numbers as words; None where some need more than 32 bits and come seldom."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    words, kinds = single.view(np.int32), np.full(len(values), SINGLE, np.uint8)
    left = np.flatnonzero((single != values) & ~np.isnan(values))
    rest = values[left]
    for digits, power in enumerate(_POWERS):
        with np.errstate(over="ignore"):
            whole = np.rint(rest * power)
        holds = (np.abs(whole) <= _LARGEST) & (whole / power == rest)
        words[left[holds]], kinds[left[holds]] = whole[holds], digits
        left, rest = left[~holds], rest[~holds]
    often, places = np.unique(rest, return_inverse=True)
    words[left], kinds[left] = places, OFTEN
    return Worded(words, kinds, often) if len(often) * _REPEATED <= len(values) else None


def read(words: NDArray[np.int32], kinds: NDArray[np.uint8], often: Floats) -> Floats:
    """Give numbers back."""
    found = np.empty(len(words))
    for first in range(0, len(words), _PIECE):
        piece = slice(first, first + _PIECE)
        part, own, kind = found[piece], words[piece], kinds[piece]
        np.divide(own, _POWERS.take(kind, mode="clip"), out=part)
        single, often_ = kind == SINGLE, kind == OFTEN
        part[single] = own.view(np.float32)[single]
        part[often_] = often[own[often_]]
    return found
