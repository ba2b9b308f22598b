"""Whole numbers that rise about evenly, by the million, as memory holds them: how far each is from a line.

Numbers of lines, of records and of rows, steps, offsets and times of a long run follow each other so: of most, a byte
or nothing is left beside the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from forensics.io.columns import owned

Whole = NDArray[np.integer[Any]]
T = TypeVar("T", bound=np.integer[Any])
#: So many numbers are looked at together.
_PIECE = 1_000_000
#: So many numbers show which of two lines is the nearer.
_SAMPLE = 1_000
#: Differences of numbers below this fit 64 bits.
_LARGEST = 1 << 61


class Even(Struct, frozen=True, eq=False):
    """Number i of `count` is floor((i + 1/2) `rise`) + `base` + `rest`[i] `unit`s; `rest` is None where a line has all.

    The half keeps a line that passes whole numbers, as a fifth of a record a row, from ending beside one of them.
    """

    count: int
    rise: float
    base: int
    rest: Whole | None = None
    unit: int = 1

    def __len__(self) -> int:
        """Count the numbers."""
        return self.count

    def take(self, places: Whole) -> NDArray[np.int64]:
        """Give some of the numbers."""
        found = _line(places, self.rise)
        found += self.base
        if self.rest is not None:
            found += self.rest[places]
        if self.unit != 1:
            found *= self.unit
        return found

    def whole(self, kind: type[T]) -> NDArray[T]:
        """Give all of them, some at a time: on the way a number takes four times its bytes."""
        found = np.empty(self.count, kind)
        for first in range(0, self.count, _PIECE):
            found[first : first + _PIECE] = self.take(np.arange(first, min(first + _PIECE, self.count)))
        return found

    def one(self, place: int) -> int:
        """Give one of them."""
        return int(self.take(np.array([place]))[0])

    def expression(self, place: str) -> pl.Expr:
        """Give those whose places are a column."""
        line = ((pl.col(place).cast(pl.Float64) + 0.5) * self.rise).floor().cast(pl.Int64) + self.base
        if self.rest is not None:
            line += pl.lit(pl.Series(self.rest)).gather(place).cast(pl.Int64)
        return line if self.unit == 1 else line * self.unit


def evened(numbers: Whole) -> Even | None:
    """Hold numbers by a line; None where that takes no fewer bytes."""
    if len(numbers) < 2 or numbers.max() > _LARGEST or numbers.min() < -_LARGEST:
        return None
    pieces = [slice(at, at + _PIECE) for at in range(0, len(numbers), _PIECE)]
    some = np.arange(0, len(numbers), max(len(numbers) // _SAMPLE, 1))
    unit = _unit(numbers, some, pieces)
    first, last = int(numbers[0]) // unit, int(numbers[-1]) // unit
    lines = ((last - first) / (len(numbers) - 1), (last - first + 1) / len(numbers))
    seen = numbers[some].astype(np.int64) // unit
    rise = min(lines, key=lambda rise: np.ptp(seen - _line(some, rise)))
    ends = [(part.min(), part.max()) for part in (_departures(numbers, piece, rise, unit) for piece in pieces)]
    base, highest = min(int(low) for low, _ in ends), max(int(high) for _, high in ends)
    if highest == base:
        return Even(len(numbers), rise, base, None, unit)
    dtype = np.min_scalar_type(highest - base)
    if dtype.itemsize >= numbers.dtype.itemsize:
        return None
    rest = np.empty(len(numbers), dtype)
    for piece in pieces:
        rest[piece] = _departures(numbers, piece, rise, unit) - base
    return Even(len(numbers), rise, base, owned(rest), unit)


def _unit(numbers: Whole, some: Whole, pieces: Sequence[slice[int, int]]) -> int:
    """The largest number that divides all: times in whole seconds are nanoseconds a billion apart."""
    unit = int(np.gcd.reduce(numbers[some]))
    return unit if unit > 1 and not any((numbers[piece] % unit).any() for piece in pieces) else 1


def _departures(numbers: Whole, piece: slice[int, int], rise: float, unit: int) -> NDArray[np.int64]:
    own = numbers[piece].astype(np.int64)
    if unit != 1:
        own //= unit
    return own - _line(np.arange(len(own)) + piece.start, rise)


def _line(places: Whole, rise: float) -> NDArray[np.int64]:
    line = places + 0.5
    line *= rise
    return np.floor(line, out=line).astype(np.int64)
