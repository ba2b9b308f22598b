"""Places of the data: what comes back at the same fraction of several epochs is in the data."""

from __future__ import annotations

import numpy as np

from forensics.stats.spread import Floats

_MIN_EPOCHS = 2
_MIN_RECORDS = 4


def same_place(epochs: Floats, begins: np.ndarray) -> np.ndarray:
    """Give those of some records that stand at one place of different epochs, the first of each epoch.

    `epochs` are the epochs of all records in order, shape (n,), NaN where none is printed; `begins` are positions in
    it. A place is as wide as the share of an epoch that lies between two records; the very begin of an epoch is none.
    Empty when not even two epochs share one.
    """
    nothing = begins[:0]
    gaps = np.diff(epochs[np.isfinite(epochs)])
    if len(epochs) < _MIN_RECORDS or not (gaps > 0).any():
        return nothing
    share = float(np.median(gaps[gaps > 0]))
    begins = begins[np.isfinite(epochs[begins])]
    whole = np.floor(epochs[begins])
    place = epochs[begins] - whole
    inside = (place > share / 2) & (place < 1 - share / 2)
    if share >= 1 / _MIN_EPOCHS or not inside.any():
        return nothing
    begins, whole, slots = begins[inside], whole[inside], np.round(place[inside] / share)
    for slot in dict.fromkeys(slots.tolist()):
        _, first = np.unique(whole[slots == slot], return_index=True)
        if len(first) >= _MIN_EPOCHS:
            return begins[slots == slot][np.sort(first)]
    return nothing
