"""How many samples of a memory series belong to its warm-up: the first jumps that never come back."""

from __future__ import annotations

import numpy as np

from forensics.analyses.memory._fit import noise_of
from forensics.analyses.memory._form import FEWEST
from forensics.stats.spread import Floats

#: Samples behind a jump that say whether it lasts.
_SHORT = 5
#: Of the rise of a running maximum, the jump that ends its warm-up.
_MOST = 0.4
#: What a warm-up took and never gave back, as a share of it.
_KEPT = 0.7
#: The tread before a jump of the warm-up is so many times shorter than those behind it.
_SHORTER = 4


def warmup(y: Floats, quantum: float) -> int:
    """Count samples before the last large early jump that never came back: optimizer state, workspaces, compilation."""
    until = max(2, min(len(y) // 5, 20))
    moves = np.diff(y)
    usual = float(np.median(moves))
    large = max(quantum, 5 * noise_of(y), 0.01 * abs(float(np.median(y))))
    jumps = [int(i) for i in np.flatnonzero(moves[:until] - usual > large) if _lasts(y, int(i), usual)]
    if not jumps or len(y) - jumps[-1] - 1 < FEWEST:
        return 0
    last, first = jumps[-1] + 1, jumps[0] + 1
    before, after = float(np.median(y[:first])), float(np.median(y[last : last + _SHORT]))
    if y[last:].min() < before + _KEPT * (after - before):
        return 0
    # a staircase begins with the same jumps that it goes on with, and at the same distance
    height = 0.5 * float((moves[:until] - usual).max())
    later = [i for i in np.flatnonzero(moves[until:] - usual >= height) + until if _lasts(y, int(i), usual)]
    return last if not later or (len(y) - last) / (len(later) + 1) >= _SHORTER * last else 0


def settled(y: Floats) -> int:
    """Count the first samples of a running maximum before the jump that made most of its rise, where it came early."""
    moves = np.diff(y)
    early = (
        np.flatnonzero(moves[: max(2, min(5, len(y) // 10))] >= _MOST * float(y[-1] - y[0])) if len(moves) else moves
    )
    return int(early[-1]) + 1 if len(early) and y[-1] > y[0] and len(y) - int(early[-1]) - 1 >= FEWEST else 0


def _lasts(y: Floats, at: int, usual: float) -> bool:
    """Whether what rose from sample `at` to the next one is still there in the samples behind it."""
    behind = y[at + 1 : at + 1 + _SHORT]
    return float(np.median(behind)) - y[at] - usual >= 0.5 * float(y[at + 1] - y[at] - usual)
