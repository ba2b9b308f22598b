"""The learning rate as logged: its peak, where it is zero, and where it jumps."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from forensics.case.curves.loss import Curve, beside
from forensics.stats.spread import median_of
from forensics.store.run import Run


class Schedule(Struct, frozen=True):
    """One logged learning rate: all indices are positions in `curve`.

    `peak` is its highest value, first reached at `top`; `zeros` the share of records that are exactly zero;
    `dead` the first position of the zeros at the end (the length where there are none), `before_dead` the last value
    before them. `late` is the median of the last quarter. `ups` are the positions whose value is above the one before
    by more than `JUMP` times where the rate did not rise just before; the stairs of a warm-up do not count.
    """

    curve: Curve
    peak: float
    top: int
    zeros: float
    dead: int
    before_dead: float
    late: float
    ups: tuple[int, ...]


#: From one record to the next a schedule hardly doubles after its peak.
JUMP = 1.5
#: A warm-up that is printed more often than it changes is a flight of at least this many like stairs.
_STAIRS = 3


def schedule_of(curve: Curve) -> Schedule:
    """Read one curve of learning rates."""
    v = curve.values
    n = len(v)
    top = int(np.argmax(v))
    alive = np.flatnonzero(v != 0)
    dead = int(alive[-1]) + 1 if len(alive) else 0
    rising = np.flatnonzero(v[1:] / JUMP > v[:-1]) + 1
    return Schedule(
        curve=curve,
        peak=float(v[top]),
        top=top,
        zeros=float((v == 0).mean()),
        dead=dead,
        before_dead=float(v[dead - 1]) if dead else 0.0,
        late=median_of(v[-max(1, n // 4) :]),
        ups=_ups(curve, rising) if len(rising) else (),
    )


def _ups(curve: Curve, rising: NDArray[np.intp]) -> tuple[int, ...]:
    """Those of the places at which a rate rose that are no stairs of a warm-up."""
    v, n = curve.values, len(curve)
    fell = np.concatenate([[False], v[:-1] <= 0.999 * np.maximum.accumulate(v)[:-1]])
    at = curve.at.to_numpy()  # a step that is logged twice is no steady rate
    steady = np.zeros(n, dtype=bool)
    steady[2:] = (v[1:-1] <= v[:-2]) & (at[1:-1] != at[:-2])
    stairs = np.sort(np.diff(v))[-_STAIRS:]
    usual = JUMP * float(stairs[0]) if len(stairs) == _STAIRS else 0.0
    return tuple(
        int(i)
        for i in rising
        if i >= n // 20 and v[i - 1] > 0 and steady[i] and (fell[i] or (v[i] > v[0] and v[i] - v[i - 1] > usual))
    )


def schedule_beside(run: Run, curve: Curve) -> Schedule | None:
    """Give the schedule that the same source logs beside a curve; None when it logs none."""
    found = beside(run, curve, "lr")
    return schedule_of(found) if found is not None else None
