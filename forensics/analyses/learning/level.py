"""The moving level of a curve on a logarithmic scale, and the noise about it: what a course and a trend begin with."""

from __future__ import annotations

from msgspec import Struct

from forensics.case.curves.loss import Curve
from forensics.stats.correlation import Noise, noise_about
from forensics.stats.running import centred_median, logs
from forensics.stats.spread import Floats

#: A curve of which fewer values are positive is no loss on a logarithmic scale.
_POSITIVE = 0.95


class Level(Struct, frozen=True, eq=False):
    """Logarithms `y` of the positive values, their `place` in the curve, and the medians of `window` around each."""

    y: Floats
    place: Floats
    middle: Floats
    noise: Noise
    window: int


def level_of(curve: Curve, window: int) -> Level | None:
    """Give the level over `window` records, of a short curve a third of it; None for a single value or too few of all.

    It takes most of the time that a long curve is judged in, so who asks for a course and a trend makes it once.
    """
    y, place = logs(curve.values)
    n = len(y)
    if n <= 1 or n < _POSITIVE * len(curve):
        return None
    window = min(window, (n // 6) * 2 + 1)
    middle = centred_median(y, window)
    return Level(y, place, middle, noise_about(y, middle), window)
