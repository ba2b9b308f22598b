"""Restarts: a training stream whose step goes back begins the next attempt."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_CROWD = 0.2


@dataclass(slots=True)
class Stream:
    """What is remembered of one stream (dialect, rank) from block to block."""

    restarts: int = 0
    kind: int | None = None
    recent: list[int] = field(default_factory=list[int])


def restarts(steps: Ints, before: list[int]) -> npt.NDArray[np.bool_]:
    """Which records begin a new attempt: the step is below the one before.

    When several ranks write into one stream without a prefix their steps repeat, and one that lags by at most two
    typical increments is a slow neighbour, not a restart (`before`: the last steps of the previous block).
    """
    joined = np.concatenate([np.asarray(before, np.int64), steps])
    deltas = np.diff(joined)
    own = deltas[len(before) - 1 :] if before else np.concatenate([np.ones(min(1, len(steps)), np.int64), deltas])
    back = own < 0
    if back.any() and (deltas == 0).mean() >= _CROWD:
        forward = deltas[deltas > 0]
        back &= own < -2 * (int(np.median(forward)) if len(forward) else 1)
    return back


def advance(stream: Stream, steps: Ints) -> Ints:
    """Attempt number of each record of a stream, in order; the stream remembers where it stood."""
    numbers = stream.restarts + np.cumsum(restarts(steps, stream.recent))
    if len(steps):
        stream.restarts = int(numbers[-1])
        stream.recent = [*stream.recent, *steps[-32:].tolist()][-32:]
    return numbers.astype(np.int64)
