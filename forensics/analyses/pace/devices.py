"""How many devices a run says that it has, and whether a slower step is only shared by fewer of them."""

from __future__ import annotations

from forensics.analyses.pace.change import Change
from forensics.analyses.pace.clocks import Clock
from forensics.analyses.pace.pauses import Steps
from forensics.case.world import devices_told
from forensics.store.run import Run

#: Fewer devices that leave each as fast as it was explain a rise to this much beyond their share.
_SCALING = 1.1
#: A change is found within so many records of where it is.
_BESIDE = 3


def fewer_devices(run: Run, clock: Clock, records: Steps, change: Change) -> bool:
    """Whether the run began again on fewer devices where its steps became slower, and each is about as fast as before.

    `records` are positions in the clock; `change` counts in them.
    """
    said = devices_told(run)
    if not said:
        return False
    beside = (min(max(at, 0), len(records) - 1) for at in (change.first - _BESIDE, change.first + _BESIDE))
    lines = [clock.row(int(records[at]))["line"] for at in beside]
    own = [(line, count) for source, line, count in said if source == clock.source]
    before = [count for line, count in own if line < lines[0]]
    after = [count for line, count in own if lines[0] <= line <= lines[1]]
    if not before or not after:
        return False
    return after[-1] < before[-1] and change.ratio * after[-1] / before[-1] < _SCALING
