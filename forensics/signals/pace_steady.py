"""A series of times per step made steady: warm-up cut off, pauses set aside, the unit of printing known."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from forensics.signals.loss_curve import Floats
from forensics.signals.pace_noise import jitter
from forensics.signals.pace_pauses import (
    Comb,
    Flags,
    Spikes,
    Steps,
    by_record,
    combs,
    excess,
    of_combs,
    spikes,
    warmup,
    winsorised,
)

#: Fewer records than this are no series.
FEWEST = 12
_MODES = 0.15  # share of spikes above which they are a second mode, not spikes


@dataclass(frozen=True, slots=True)
class Steady:
    """Records of one series after the warm-up, with what stands out of them.

    `kept` are the positions in the series that was given, `seconds` and `steps` theirs; `logs` are the logarithms
    without a pattern of `period` records (0: none). `values` are the logs that a level may be judged on: spikes
    replaced, tails pulled in. `pauses` are the periodic ones. `resolution` is the printing unit over the median.
    """

    kept: Steps
    seconds: Floats
    steps: Steps
    logs: Floats
    values: Floats
    spikes: Spikes
    pauses: tuple[Comb, ...]
    period: int
    multimodal: bool
    resolution: float
    warmup: int

    def __len__(self) -> int:
        """Count the records."""
        return len(self.logs)

    @property
    def irregular(self) -> Floats:
        """Time that pauses without a period add to each record, in units of a usual one."""
        return np.where(of_combs(self.steps, self.pauses), 0.0, excess(self.logs, self.spikes))

    def slice(self, first: int) -> Steady:
        """Give the records from `first` on, as a series of their own without a warm-up."""
        part = (self.logs[first:], self.seconds[first:], self.steps[first:], self.kept[first:])
        return _steady(*part, (0, self.resolution))

    @property
    def paused(self) -> Flags:
        """Flag the records that hold a pause."""
        return self.spikes.high(self.logs)


def steady(seconds: Floats, steps: Steps, quantum: float = 0.0, *, fewest: int = FEWEST) -> Steady | None:
    """Make a series steady; None when fewer than `fewest` records are positive and finite, and not warm-up.

    `quantum` is the unit in which times were printed, where the reader knows it better than the values show.
    """
    good = np.flatnonzero(np.isfinite(seconds) & (seconds > 0))
    if len(good) < fewest:
        return None
    logs = np.log(seconds[good])
    cold = warmup(logs, jitter(logs) + 1e-9)
    good, logs = good[cold:], logs[cold:]
    if len(good) < fewest:
        return None
    return _steady(logs, seconds[good], steps[good], good, (cold, _resolution(seconds[good], quantum)))


def _steady(logs: Floats, seconds: Floats, steps: Steps, kept: Steps, known: tuple[int, float]) -> Steady:
    found = spikes(logs)
    pattern = by_record(logs)
    if pattern is not None:
        logs = pattern[1]
        found = spikes(logs)
    many = float(found.far.mean()) > _MODES
    high = np.flatnonzero(found.high(logs))
    regular = combs(steps[high], int(steps[0]), int(steps[-1])) if 3 <= len(high) < _MODES * len(logs) else ()
    values = np.clip(logs, *np.quantile(logs, [0.01, 0.99])) if many else winsorised(logs, found)
    return Steady(
        kept=kept,
        seconds=seconds,
        steps=steps,
        logs=logs,
        values=values,
        spikes=found,
        pauses=regular,
        period=pattern[0] if pattern is not None else 0,
        multimodal=many,
        resolution=known[1],
        warmup=known[0],
    )


def _resolution(seconds: Floats, quantum: float) -> float:
    """Printing unit over the median: the smallest difference of two values, where few values come again and again."""
    distinct = np.unique(seconds)
    seen = float(np.diff(distinct).min()) if 1 < len(distinct) < 0.2 * len(seconds) else 0.0
    return max(seen, quantum) / float(np.median(seconds))


def least_effect(effect: float) -> float:
    """Give a relative effect as a difference of logarithms."""
    return log(1 + effect)
