"""When a growing series meets the end of the memory: an interval of steps, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.memory.shape import Form
from forensics.stats.spread import Floats
from forensics.stats.trend import line_of

#: Growth that differs more than this between parts of the series cannot be projected.
_UNEVEN = 5.0


@dataclass(frozen=True, slots=True)
class Reach:
    """Between which steps the memory would be full; `exact_room` is whether what others hold was measured.

    `at_the_latest` is set when only allocated memory was logged: what the allocator reserves is more, and ends sooner.
    """

    low: float
    high: float
    at_the_latest: bool = False


def reach_of(form: Form, x: Floats, y: Floats, room: tuple[float, float] | None) -> Reach | None:
    """Project a slope or a staircase to its end: the slopes of the last half, the last two thirds and the whole.

    Flat, plateau, unresolved and falling series give None, and so do slopes that differ too much.
    """
    if form.kind not in {"slope", "staircase"} or form.rise <= 0 or room is None:
        return None
    start = form.onset if form.onset is not None and len(y) - form.onset >= 16 and form.kind == "slope" else form.warmup
    x, y = x[start:], y[start:]
    n = len(y)
    slopes = sorted(line_of(x[cut:], y[cut:]).rise for cut in (0, n // 3, n // 2) if n - cut >= 4)
    if form.kind == "staircase" and form.height and form.period:
        slopes = sorted([*slopes, form.height / form.period])
    slopes = [s for s in slopes if s > 0]
    if len(slopes) < 2 or slopes[-1] > _UNEVEN * slopes[0]:
        return None
    now = float(y[-max(1, n // 20) :].max())
    lowest, highest = max(room[0] - now, 0.0), max(room[1] - now, 0.0)
    last = float(x[-1])
    return Reach(last + lowest / slopes[-1], last + highest / slopes[0])
