"""Microseconds as traces print them, as whole nanoseconds, exact in every version of the profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.patterns import lazily

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

#: Below, a float holds microseconds to less than half a nanosecond.
_EXACT_BELOW_US = float(1 << 43)
#: Above, a stamp is in nanoseconds: as microseconds it would be in the year 5138.
NS_FROM = 1e17
_WHOLE_BELOW = float(1 << 53)
#: A stamp and a base, both below, fit 64 bits together.
_MOST_NS = 1 << 62
#: Microseconds since 1970 with a fraction that is no multiple of a quarter, which is all that a float keeps there.
_ODD = lazily(rb'"ts"\s*:\s*-?\d{13,}\.(?!(?:0+|250*|50*|750*)[\s,}])')


def rounds(us: Floats, raw: Callable[[], bytes]) -> bool:
    """Whether floats of these stamps, printed in `raw()`, are not what was printed."""
    large = us[np.abs(np.nan_to_num(us)) >= _EXACT_BELOW_US]
    if not large.size:
        return False
    if (np.abs(large) >= _WHOLE_BELOW).any():
        return True
    return _ODD.search(raw()) is not None


def floats(values: Iterable[Any], count: int) -> Floats:
    """The values, all of them floats, integers or None, as floats with NaN for what is missing."""
    held = list(values)
    try:
        return np.fromiter(held, np.float64, count)
    except TypeError:
        return np.array(held, np.float64)


def nanoseconds(us: Floats) -> tuple[Ints, Bools]:
    """Whole nanoseconds of microseconds that a float holds exactly enough, and which of them are known.

    Whole and fraction are scaled apart: their sum times 1,000 has more digits than a float.
    """
    known = np.abs(np.nan_to_num(us, nan=np.inf)) < _MOST_NS / 1000
    safe = np.where(known, us, 0.0)
    whole = np.floor(safe)
    return whole.astype(np.int64) * 1000 + np.rint((safe - whole) * 1000).astype(np.int64), known


def nanoseconds_exactly(values: Iterable[Any], scale: int) -> tuple[Ints, Bools]:
    """The same of any mixture of integers, floats, decimals and None; a unit is `scale` nanoseconds."""
    found = [_exactly(value, scale) for value in values]
    known = np.array([one is not None for one in found], np.bool_)
    return np.array([one or 0 for one in found], np.int64), known


def _exactly(value: object, scale: int) -> int | None:
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value) >= _MOST_NS:
            return None
        value = (value * scale).to_integral_value()
    elif not isinstance(value, int) or abs(value) >= _MOST_NS:
        return None
    else:
        value *= scale
    return int(value) if abs(value) < _MOST_NS else None
