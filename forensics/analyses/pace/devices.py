"""How many devices a run says that it has, and whether a slower step is only shared by fewer of them."""

from __future__ import annotations

import polars as pl

from forensics.analyses.pace.change import Change
from forensics.case.world import devices_told
from forensics.store.run import Run

#: Fewer devices that leave each as fast as it was explain a rise to this much beyond their share.
_SCALING = 1.1
#: A change is found within so many records of where it is.
_BESIDE = 3


def fewer_devices(run: Run, rows: pl.DataFrame, change: Change) -> bool:
    """Whether the run began again on fewer devices where its steps became slower, and each is about as fast as before.

    `rows` are the records of a clock, of one source, with their lines; `change` counts in them.
    """
    said = devices_told(run)
    if not said:
        return False
    lines = [rows["line"][min(max(at, 0), rows.height - 1)] for at in (change.first - _BESIDE, change.first + _BESIDE)]
    own = [(line, count) for source, line, count in said if source == rows["source"][0]]
    before = [count for line, count in own if line < lines[0]]
    after = [count for line, count in own if lines[0] <= line <= lines[1]]
    if not before or not after:
        return False
    return after[-1] < before[-1] and change.ratio * after[-1] / before[-1] < _SCALING
