"""The one way in which numpy memory becomes a column: polars keeps what it is given, so nobody may write there again.

A series made from an array is a view of it. A buffer that is filled again after that changes rows that were read long
before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T", bound="np.generic")


def owned(array: NDArray[T]) -> NDArray[T]:
    """Give the array as memory that never changes again: itself, closed for writing, or a copy where it is a view.

    A view shares its memory with an array that stays open for writing, whoever holds it; an array of its own does not.
    """
    given: NDArray[Any] = array if array.base is None and array.flags.owndata else array.copy()
    given.flags.writeable = False
    return given
