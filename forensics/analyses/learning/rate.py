"""What the learning rate did to a run: zero while it went on, or still warming up when it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from forensics.analyses.learning.losses import judged
from forensics.analyses.learning.lr_schedule import Schedule, schedule_of
from forensics.case.curves.loss import Curve, beside
from forensics.case.end_markers import marks_of
from forensics.case.progress import ledger
from forensics.stats.spread import each_once
from forensics.store.run import Run

#: Above all values before it by this much a rate did not only come back: no schedule with restarts does that.
OVER_PEAK = 1.2
#: Records within which a loss follows a rate that leapt.
_NEAR = 10


class Zero(Struct, frozen=True):
    """Thresholds of LRN008: shares of records, and of the peak for the last value that is not zero.

    Where the peak is fewer than `units` of the last printed digit, a smooth decay vanishes in print: a line or a
    cosine from twenty units does so for a tenth of the run at most, so for `most` of it the rate is what is printed.
    An exponential vanishes for any part of it, and has its last digit for more than `tail` of the records before: from
    60 units for a quarter, where a line has it for a sixtieth.
    """

    records: int = 20
    always: float = 0.95
    few: int = 3
    early: float = 0.2
    abrupt: float = 0.05
    units: float = 1000.0
    most: float = 0.5
    tail: float = 0.1


def ended_early(schedule: Schedule, limits: Zero) -> bool:
    """Whether the rate is zero for a good part of the run's end, and not by the digits that are printed alone."""
    v = schedule.curve.values
    left = len(v) - schedule.dead
    if schedule.peak <= 0 or left < max(limits.few, limits.early * len(v)):
        return False
    seen = schedule.before_dead > limits.abrupt * schedule.peak or schedule.peak >= limits.units * _unit(v)
    steep = np.count_nonzero(v == schedule.before_dead) <= limits.tail * schedule.dead
    return seen or bool(steep and left >= limits.most * len(v))


def spent(run: Run, limits: Zero) -> bool:
    """Whether a rate is zero for the last half of the run or more, after it was not."""
    every = [schedule_of(curve) for curve in judged(run, "lr") if len(curve) > limits.few]
    return any(2 * s.dead <= len(s.curve) and ended_early(s, limits) for s in every)


def _unit(values: np.ndarray) -> float:
    """Bound the unit in which values are printed: the smallest of them, and of their differences."""
    levels = each_once(np.append(values, 0.0))
    steps = np.diff(levels)
    return float(steps.min()) if len(steps) else float("inf")


class Warming(Struct, frozen=True):
    """Thresholds of a warm-up that is longer than the run.

    From at most `first` of its last value on the rate rises in all of `records` or more, along a line that it leaves by
    `bent` at most. The run reached its end, over `steps` or more, and its loss fell by less than `fell`: a short run
    that learned most of what it could, as a detector in 300 steps of its 1,000 of warm-up, did not need the rest.
    """

    records: int = 8
    steps: int = 50
    first: float = 0.3
    bent: float = 0.1
    fell: float = 0.3
    finished: float = 0.95


def rose_to_the_end(schedule: Schedule, limits: Warming) -> bool:
    """Whether a rate rises along a line from its first record to its last."""
    v, n = schedule.curve.values, len(schedule.curve)
    first, last = schedule.curve.step(0), schedule.curve.step(-1)
    if n < limits.records or (last - first + 1 if first is not None and last is not None else n) < limits.steps:
        return False
    if v[-1] <= 0 or v[0] > limits.first * v[-1] or bool((np.diff(v) < 0).any()):
        return False
    at = np.arange(n) if first is None else schedule.curve.at.cast(float).to_numpy()
    line = np.interp(at, (at[0], at[-1]), (v[0], v[-1]))
    return float(np.abs(v - line).max()) <= limits.bent * float(v[-1])


def reached_its_end(run: Run, schedule: Schedule, limits: Warming) -> bool:
    """Whether a run says that it ended, or logged its rate up to the last steps that were planned."""
    total, last = ledger(run).planned("step"), schedule.curve.step(-1)
    planned = total is not None and last is not None and last >= limits.finished * total
    return planned or marks_of(run).final is not None


def jump_before(run: Run, curve: Curve, onset: int) -> tuple[Mapping[str, Any], float, float] | None:
    """Give the row at which the rate beside a loss leapt above all before it, within `_NEAR` records of an onset.

    With the value before and after it; None where no rate is logged, or it did not leap.
    """
    rate = beside(run, curve, "lr")
    at = curve.step(onset)
    if rate is None or (at is None and len(rate) != len(curve)):
        return None
    schedule, values = schedule_of(rate), rate.values
    for up in schedule.ups:
        before, after = float(values[up - 1]), float(values[up])
        step = rate.step(up)
        gap = onset - up if at is None or step is None else onset - int((curve.at < step).sum())
        if after > OVER_PEAK * float(values[:up].max()) and -1 <= gap <= _NEAR:
            return rate.row(up), before, after
    return None
