"""Places of the data: what comes back at the same fraction of several epochs is in the data."""

from __future__ import annotations

import numpy as np

from forensics.stats.spread import Floats, median_of

_MIN_EPOCHS = 2
_MIN_RECORDS = 4
#: Units in which trainers print an epoch; two prints of one place may be a unit apart, never as far as a neighbour.
_UNITS, _NEIGHBOUR = (0.1, 0.01, 0.001), 0.9


def same_place(epochs: Floats, begins: np.ndarray) -> np.ndarray:
    """Give the records that are at the same place of different epochs, the first of each epoch.

    `epochs` are the epochs of all records in order, shape (n,), NaN where none is printed; `begins` are positions in
    it. A place is as wide as the share of an epoch that lies between two records, or as the unit in which epochs are
    printed; the very begin of an epoch is none. Empty when not even two epochs share one. Epochs that are counted in
    whole numbers get the place of a record in its epoch as their fraction.
    """
    epochs = _with_places(epochs)
    nothing = begins[:0]
    gaps = np.diff(epochs[np.isfinite(epochs)])
    if len(epochs) < _MIN_RECORDS or not (gaps > 0).any():
        return nothing
    share = max(median_of(gaps[gaps > 0]), float(gaps[gaps >= 0].mean()))
    begins = begins[np.isfinite(epochs[begins])]
    whole = np.floor(epochs[begins])
    place = epochs[begins] - whole
    inside = (place > share / 2) & (place < 1 - share / 2)
    if share >= 1 / _MIN_EPOCHS or not inside.any():
        return nothing
    begins, whole, place = begins[inside], whole[inside], place[inside]
    reach = max(share / 2, min(1.01 * _unit(epochs[np.isfinite(epochs)]), _NEIGHBOUR * share))
    for one in place.tolist():
        near = np.abs(place - one) <= reach
        _, first = np.unique(whole[near], return_index=True)
        if len(first) >= _MIN_EPOCHS:
            return begins[near][np.sort(first)]
    return nothing


def _with_places(epochs: Floats) -> Floats:
    """Epochs of whole numbers with a fraction: the place of each record among those of its epoch, in print order."""
    known = epochs[np.isfinite(epochs)]
    if len(known) < len(epochs) or (known != np.floor(known)).any():
        return epochs
    begins = np.flatnonzero(np.diff(epochs, prepend=np.nan) != 0)
    if (np.diff(epochs[begins]) <= 0).any():
        return epochs
    lengths = np.diff(begins, append=len(epochs))
    return epochs + (np.arange(len(epochs)) - np.repeat(begins, lengths)) / max(lengths.max(initial=1), 1)


def _unit(epochs: Floats) -> float:
    """The unit in which epochs are printed; 0 where they are printed in full."""
    return next((unit for unit in _UNITS if np.allclose(epochs / unit, np.round(epochs / unit), atol=1e-6)), 0.0)
