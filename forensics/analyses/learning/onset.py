"""Where a series left its past: the first record of the step or of the slope that explains the rise best."""

from __future__ import annotations

import numpy as np

from forensics.stats.spread import Floats

#: Deviations above the level before that a record must lie to belong to the rise: 1 of 740 does by chance.
_OUTSIDE = 3.0


def onset_of(y: Floats, low: int, high: int, level: float, sd: float) -> int:
    """Give the first position of a rise of `y` above `level` that begins after `low` and is made at `high`.

    Between the two a step (all records after it lie up) and a hinge (they climb from it on) are fitted at every
    position by least squares; the one that explains most places the onset. Records before it that stand out of the
    noise `sd`, each of them up to it, belong to the rise as well.
    """
    part = y[low : high + 1] - level
    n = len(part)
    if n < 2:
        return high
    after = np.arange(n, 0, -1, dtype=np.float64)
    sums = np.cumsum(part[::-1])[::-1]
    weighted = np.cumsum((np.arange(n) * part)[::-1])[::-1]
    step = np.maximum(sums, 0.0) ** 2 / after
    # a hinge at k: records k, k + 1, … lie 1, 2, … slopes above the level
    climb = weighted - (np.arange(n) - 1) * sums
    hinge = np.maximum(climb, 0.0) ** 2 / (after * (after + 1) * (2 * after + 1) / 6)
    at = int(np.argmax(hinge if hinge.max() > step.max() else step))
    while at > 0 and part[at - 1] > _OUTSIDE * sd:
        at -= 1
    while at < n - 1 and part[at] <= 0:
        at += 1
    return low + at
