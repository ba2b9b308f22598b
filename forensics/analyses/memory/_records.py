"""The shape of a memory series that can only rise: a peak that was never reset, a cache that is never given back."""

from __future__ import annotations

import numpy as np

from forensics.analyses.memory._form import Form, Kind, Scale, Step, if_resolved, regular
from forensics.stats.spread import Floats
from forensics.stats.trend import line_of


def records(x: Floats, y: Floats, scale: Scale, quantum: float) -> Form:
    """Judge a series that can only rise by its new records in the second half."""
    n, moves = len(y), np.diff(y)
    rises = np.flatnonzero(moves >= max(quantum / 8, scale.printed / 2)) + 1
    total, half = float(y[-1] - y[0]), n // 2
    late = int((rises >= half).sum())
    steps = tuple(Step(int(i), float(x[i]), float(moves[i - 1])) for i in rises[:64])
    note = "a running maximum: what came back down cannot be seen"
    if total < max(0.01 * abs(float(np.median(y))), quantum):
        return Form("flat", n, rise=total, note=note)
    even, second = _even(steps, n), float(y[-1] - y[half])
    largest = float(moves.max())
    if largest >= 0.5 * total and moves.argmax() >= half:  # one shift is no growth, nor are the few records after it
        late, second = late - 1, second - largest
    if not even and (late < 3 or second < 0.2 * total):
        return Form("plateau", n, rise=total, steps=steps, note=note)
    per = (y[-1] - y[half]) / max(float(x[-1] - x[half]), 1e-9)
    large = _large(x, moves)
    stairs = even or _regular_stairs(large, total)
    kind: Kind = "staircase" if stairs else "slope" if late >= 0.15 * (n - half) else "unresolved"
    steps = large if stairs else steps
    form = Form(
        kind, n, rise=total, per_step=float(per), onset=int(rises[0]),
        steps=steps, period=regular(steps), height=float(np.median([s.height for s in steps])), note=note,
    )  # fmt: skip
    t = (x - x[0]) / max(float(x[-1] - x[0]), 1e-9)
    fit = line_of(t, y)
    return if_resolved(form, y, fit.start + fit.rise * t, scale)


def _large(x: Floats, moves: Floats) -> tuple[Step, ...]:
    """Give the records of at least a quarter of the largest one's height, the first 64 of them."""
    large = np.flatnonzero(moves >= 0.25 * moves.max()) + 1
    return tuple(Step(int(i), float(x[i]), float(moves[i - 1])) for i in large[:64])


def _regular_stairs(steps: tuple[Step, ...], total: float) -> bool:
    """Whether steps of like height at like distances, none nearer than 4 samples, carry most of the rise."""
    if len(steps) < 3 or regular(steps) is None:
        return False
    heights = np.array([s.height for s in steps])
    apart = np.diff([s.index for s in steps])
    return bool(heights.sum() >= 0.6 * total and heights.std() <= 0.35 * heights.mean() and np.median(apart) >= 4)


def _even(steps: tuple[Step, ...], n: int) -> bool:
    """Whether at least three steps of equal height stand at equal distances over the run, which chance does not do."""
    heights = np.array([s.height for s in steps])
    apart = np.diff([s.index for s in steps])
    if len(steps) < 3 or apart.min() < 4 or n - steps[-1].index > 1.5 * apart.max():
        return False
    return bool(np.ptp(heights) <= 0.15 * heights.mean() and np.ptp(apart) <= max(2, 0.15 * apart.mean()))
