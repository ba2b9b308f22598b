"""Whether pauses without a period became more frequent: what a loader that starves looks like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.signals.loss_curve import Floats
from forensics.signals.pace_pauses import Flags


@dataclass(frozen=True, slots=True)
class Stalls:
    """From record `index` on pauses came more often: `added` time per step, relative, and `z` of the change."""

    index: int
    before: float
    after: float
    added: float
    z: float


def stalls_of(excess: Floats, *, fewest: int = 8, least_lr: float = 28.0, least_added: float = 0.05) -> Stalls | None:
    """Find the best single change of the rate of stalls, by a Bernoulli scan over the starts of slow runs.

    `excess` is the time that each record adds to a usual step, 0 for usual ones. Twice the log-likelihood ratio must
    pass `least_lr` (Kulldorff 1997 on scan statistics) and the added time `least_added` of a step.
    """
    n = len(excess)
    starts = _starts(excess > 0)
    total = int(starts.sum())
    if total < fewest:
        return None
    place = np.arange(1, n, dtype=np.float64)
    early = np.cumsum(starts)[:-1].astype(np.float64)
    late = total - early
    ratio = 2 * (
        _likelihood(early, place) + _likelihood(late, n - place) - _likelihood(np.array([total]), np.array([n]))
    )
    edge = max(20, n // 50)
    allowed = (place >= edge) & (place <= n - edge) & (late / (n - place) > early / place)
    if not allowed.any():
        return None
    best = int(np.argmax(np.where(allowed, ratio, -1.0)))
    cut = best + 1
    added = float(excess[cut:].mean() - excess[:cut].mean())
    if ratio[best] <= least_lr or added <= least_added:
        return None
    return Stalls(cut, float(early[best] / cut), float(late[best] / (n - cut)), added, float(ratio[best] ** 0.5))


def _starts(slow: Flags) -> Flags:
    """Keep the first record of each run: a restart's slow burst is one event."""
    first = slow.copy()
    first[1:] &= ~slow[:-1]
    return first


def _likelihood(hits: Floats, trials: Floats) -> Floats:
    share = np.clip(hits / trials, 1e-12, 1 - 1e-12)
    value = hits * np.log(share) + (trials - hits) * np.log1p(-share)
    return np.where((hits > 0) & (hits < trials), value, 0.0)
