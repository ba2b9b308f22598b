"""Whether a resumed run meets the data of its beginning again, by how its loss goes up and down."""

from __future__ import annotations

from math import sqrt

import numpy as np
from msgspec import Struct

from forensics.stats.running import centred_median, logs
from forensics.stats.spread import Floats

#: Of a loss the ups and downs about the median of so many records are those of its batches.
_WINDOW = 11
#: So many records of a beginning are compared at most, and so many places with them.
_LONGEST, _PLACES = 200, 1000


class Alike(Struct, frozen=True):
    """When two stretches of a loss are of the same batches.

    Over `records` or more they correlate by `least`, and by `errors` standard errors of none. Of the places in the old
    life, `places` at least, no other is alike by `rival` of it: a pattern that comes again with a period fits at many.
    """

    records: int = 30
    places: int = 20
    least: float = 0.5
    errors: float = 4.0
    rival: float = 0.75


def first_data_again(old: Floats, new: Floats, limits: Alike) -> float:
    """Correlate the ups and downs of a new life with those of the old one's first records; 0 where they are not alike.

    `old` and `new` are losses in their order, shape (n,), a record for as many steps in both.
    """
    n = min(len(new), _LONGEST, len(old) - limits.places)
    if n < limits.records:
        return 0.0
    past, now = _ups_and_downs(old[: n + _PLACES]), _ups_and_downs(new[:n])
    if len(now) < n or len(past) < n + limits.places:
        return 0.0
    windows = np.lib.stride_tricks.sliding_window_view(past, n)
    windows = windows - windows.mean(axis=1, keepdims=True)
    now = now - now.mean()
    sizes = np.sqrt((windows**2).sum(axis=1) * (now @ now))
    found = np.divide(windows @ now, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
    first, other = float(found[0]), float(np.abs(found[1:]).max())
    return first if first >= max(limits.least, limits.errors / sqrt(n), other / limits.rival) else 0.0


def _ups_and_downs(values: Floats) -> Floats:
    """Logarithms about their running median."""
    y, _ = logs(values)
    return y - centred_median(y, _WINDOW)
