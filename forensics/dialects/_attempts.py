"""Restarts: a training stream whose step goes back begins the next attempt."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
#: Share of repeated steps from which a stream is taken for several ranks that print without a prefix.
_CROWD = 0.2
_WINDOW = 32


@dataclass(slots=True)
class Stream:
    """What is remembered of one stream (dialect, rank) from block to block."""

    restarts: int = 0
    kind: int | None = None
    recent: list[int] = field(default_factory=list[int])


def restarts(steps: Ints, before: list[int]) -> npt.NDArray[np.bool_]:
    """Which records begin a new attempt: the step is below the one before (`before`: earlier steps of the stream).

    Where several ranks write into one stream without a prefix, steps repeat among the 32 records before, and one that
    lags by at most two typical increments is a slow neighbour, not a restart.
    """
    joined = np.concatenate([np.asarray(before, np.int64), steps])
    deltas = np.diff(joined)
    back = deltas < 0
    if back.any():
        at = np.arange(len(deltas))
        low = np.maximum(at - _WINDOW, 0)
        repeated = _within(deltas == 0, low, at)
        forward = _within(deltas > 0, low, at)
        gained = _within(np.maximum(deltas, 0), low, at)
        typical = np.maximum(gained / np.maximum(forward, 1), 1)
        crowd = (at > low) & (repeated >= _CROWD * (at - low))
        back &= ~(crowd & (-deltas <= 2 * typical))
    first = np.zeros(min(1, len(joined)), np.bool_)
    return np.concatenate([first, back])[len(before) :]


def _within(values: npt.NDArray[np.generic], low: Ints, high: Ints) -> Ints:
    """Sums of `values[low:high]` for each pair of bounds."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
    return total[high] - total[low]


def advance(stream: Stream, steps: Ints) -> Ints:
    """Attempt number of each record of a stream, in order; the stream remembers where it stood."""
    numbers = stream.restarts + np.cumsum(restarts(steps, stream.recent))
    if len(steps):
        stream.restarts = int(numbers[-1])
        stream.recent = [*stream.recent, *steps[-_WINDOW - 1 :].tolist()][-_WINDOW - 1 :]
    return numbers.astype(np.int64)
