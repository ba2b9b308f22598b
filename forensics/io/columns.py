"""The one way from numpy memory to a column: polars keeps the memory, so nobody may write there again.

A series made from an array is a view of it. A buffer that is filled again after that changes rows that were read long
before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

T = TypeVar("T", bound="np.generic")
#: Polars looks at an array with `numpy.ma`, which takes 5 ms to load. Up to so many numbers are a list in 0.1 ms.
_FEW = 5_000


def owned(array: NDArray[T]) -> NDArray[T]:
    """Give the array as memory that never changes again: itself, closed for writing, or a copy where it is a view.

    A view shares its memory with an array that stays open for writing, whoever holds it; an array of its own does not.
    """
    given: NDArray[Any] = array if array.base is None and array.flags.owndata else array.copy()
    given.flags.writeable = False
    return given


def as_column(array: NDArray[Any], name: str = "") -> pl.Series:
    """Give numbers as a column of their type: few as a copy of them, others as an `owned` array."""
    import polars as pl  # noqa: PLC0415 - most files of a run are no tables of metrics
    from polars.datatypes import numpy_char_code_to_dtype  # noqa: PLC0415 - same

    if len(array) > _FEW:
        return pl.Series(name, owned(array))
    return pl.Series(name, array.tolist(), numpy_char_code_to_dtype(array.dtype.char))
