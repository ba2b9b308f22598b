"""A single long gap between the times of two records, though the run went on: it stood still there.

The wait of a job that begins again is no such gap: a restart or a stop that the run tells of explains it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from forensics.analyses.pace.clocks import Clock, clocks
from forensics.analyses.pace.steady import FEWEST
from forensics.case.errors.failures import failures
from forensics.case.errors.kinds import Weight
from forensics.case.processes.attempts import attempts
from forensics.stats.spread import median_of
from forensics.store.run import Run

#: Longer than the hour by which local time is put forward in spring.
_LEAST_S = 5400.0
#: So many times the usual time between two records, and the most gaps that are single ones.
_LONGER, _MOST = 10.0, 2
#: Evaluations beside fewer records than this share may be what takes long.
_OFTEN = 0.5


class Gap(Struct, frozen=True):
    """The gap of `seconds` before record `index` of a clock, where `usual_s` is usual; `share` is that of the time."""

    clock: Clock
    index: int
    seconds: float
    usual_s: float
    share: float


def longest_gap(run: Run) -> Gap | None:
    """Give the longest gap that nothing in the run explains."""
    if any(failure.weight == Weight.STOP for failure in failures(run)):
        return None
    tried = attempts(run)
    walls = (one for one in clocks(run) if one.form == "wall" and one.unit == "step" and len(one) >= FEWEST)
    placed = (one for one in walls if len(tried.every) == 1 or one.source in tried.cuts)
    return max((gap for one in placed for gap in _gaps(one)), key=lambda gap: gap.seconds, default=None)


def _gaps(clock: Clock) -> Iterator[Gap]:
    took_s = clock.seconds * clock.rows["passed"].fill_null(1).to_numpy()
    usual_s = median_of(took_s)
    far = np.flatnonzero(took_s - usual_s >= max(_LEAST_S, (_LONGER - 1) * usual_s))
    evaluated = clock.rows["evaluated"].to_numpy()
    if len(far) > _MOST or (evaluated[far].any() and evaluated.mean() < _OFTEN):
        return
    for index in far.tolist():
        yield Gap(clock, index, float(took_s[index]), usual_s, float((took_s[index] - usual_s) / took_s.sum()))
