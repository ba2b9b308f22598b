"""The learning rate as logged: its peak, where it is zero, and where it jumps."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from forensics.case.curves.loss import Curve, beside
from forensics.stats.spread import Floats, behind_last, each_once
from forensics.store.run import Run


class Schedule(Struct, frozen=True):
    """One logged learning rate: all indices are positions in `curve`.

    `peak` is its highest value, first reached at `top`; `zeros` the share of records that are zero, or at most
    `NOTHING` of the peak; `dead` the first position of those at the end (the length where there are none),
    `before_dead` the last value before them. `ups` are the positions whose value is above the one before by more than
    `JUMP` times where the rate did not rise just before; the stairs of a warm-up do not count.
    """

    curve: Curve
    peak: float
    top: int
    zeros: float
    dead: int
    before_dead: float
    ups: tuple[int, ...]


#: From one record to the next a schedule hardly doubles after its peak.
JUMP = 1.5
#: A weight of fp32 has seven digits: no step at a billionth of the peak changes it.
NOTHING = 1e-9
#: A warm-up that is printed more often than it changes is a flight of at least this many like stairs.
_STAIRS = 3


def schedule_of(curve: Curve) -> Schedule:
    """Read one curve of learning rates."""
    v = curve.values
    top = int(np.argmax(v))
    dead = behind_last(v > NOTHING * v[top])
    rising = np.flatnonzero(v[1:] / JUMP > v[:-1]) + 1
    return Schedule(
        curve=curve,
        peak=float(v[top]),
        top=top,
        zeros=float((v <= NOTHING * v[top]).mean()),
        dead=dead,
        before_dead=float(v[dead - 1]) if dead else 0.0,
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


#: A schedule that begins again may leave out so many records less one.
_SKIPPED = 3


class Again(Struct, frozen=True):
    """When a schedule goes through its beginning again.

    So many records (`repeated`) are within the share `same` of the first ones, after the rate `moved` by a share.
    """

    same: float = 0.02
    moved: float = 0.1
    repeated: int = 4


def begins_again(values: Floats, at: int, limits: Again) -> bool:
    """Whether the rates from position `at` on are those of the first record, or of one of the two after it, on."""
    new = values[at : at + limits.repeated]
    if len(new) < limits.repeated or len(each_once(new)) < limits.repeated - 1:
        return False
    begins = (values[skip : skip + limits.repeated] for skip in range(min(_SKIPPED, at - limits.repeated + 1)))
    return any(bool((np.abs(own - new) <= limits.same * np.abs(own)).all()) for own in begins)


def warms_again(values: Floats, limits: Again) -> int | None:
    """Give the position at which a rate fell in one record to its first warm-up, and warms up again; None without one.

    A schedule with restarts leaves its trough smoothly, or leaps up to its peak.
    """
    falls = np.flatnonzero(values[1:] < (1 - limits.moved) * values[:-1]) + 1
    begins = values[:_SKIPPED, None]
    falls = falls[(np.abs(begins - values[falls]) <= limits.same * np.abs(begins)).any(axis=0)]
    again = (int(at) for at in falls if values[at] < values[at + 1 : at + limits.repeated].max(initial=0.0))
    return next((at for at in again if begins_again(values, at, limits)), None)


def climbs(values: Floats, over_peak: float, side: int) -> int | None:
    """Give the trough from which a rate that had fallen rises above `over_peak` times its peak; None without one.

    The rate at the trough is below the peak by as much as it is above it later, and at least `side` records precede the
    fall and as many are between the trough and the first one above.
    """
    highest = np.maximum.accumulate(values)
    fell = np.flatnonzero(values * over_peak <= highest)
    if not len(fell) or fell[0] < side:
        return None
    first = int(fell[0])
    above = np.flatnonzero(values[first:] > over_peak * highest[first])
    trough = int(np.argmin(values[first : first + above[0]])) if len(above) else 0
    return first + trough if len(above) and above[0] - trough >= side else None


def schedule_beside(run: Run, curve: Curve) -> Schedule | None:
    """Give the schedule that the same source logs beside a curve; None when it logs none."""
    found = beside(run, curve, "lr")
    return schedule_of(found) if found is not None else None
