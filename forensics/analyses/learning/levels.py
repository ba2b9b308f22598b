"""How far a loss came: its moving level on a logarithmic scale, and its first and last ones with their errors."""

from __future__ import annotations

from math import hypot, log

import numpy as np
from msgspec import Struct

from forensics.case.curves.loss import Curve
from forensics.stats.correlation import Noise, noise_about
from forensics.stats.running import Places, centred_median, logs, ratio_of
from forensics.stats.spread import Floats, behind_last, median_of

#: A curve with fewer positive values is no loss on a logarithmic scale.
_POSITIVE = 0.95
_FEWEST = 12
#: Records that a level of a levels is the median of, at most.
WINDOW = 51
#: A single value exceeds noise by so many deviations.
_CLEAR = 4.0
_LEAP = log(1.2)  # of the first records over the very first one: no noise of a loss that only begins


class Level(Struct, frozen=True, eq=False):
    """Logarithms `y` of the positive values, their `place` in the curve, and the medians of `window` around each."""

    y: Floats
    place: Places
    middle: Floats
    noise: Noise
    window: int

    @property
    def skip(self) -> int:
        """How many first records a rise is not looked for in: what is learned at once falls there."""
        n = len(self.y)
        return min(max(10, n // 50), n // 4)


def level_of(curve: Curve, window: int) -> Level | None:
    """Give the level over `window` records, of a short curve a third of it; None for a single value or too few of all.

    It takes most of the time that a long curve is judged in, so who asks for a course and a levels makes it once.
    """
    y, place = logs(curve.values)
    n = len(y)
    if n <= 1 or n < _POSITIVE * len(curve):
        return None
    window = min(window, (n // 6) * 2 + 1)
    middle = centred_median(y, window)
    return Level(y, place, middle, noise_about(y, middle), window)


class Levels(Struct, frozen=True):
    """Levels of one curve: of its first twentieth, its third and last quarter, its last fifth, and the lowest.

    A loss that leaps up at once, or falls within the first records, has its first record for a first level. `fall` is
    the logarithm of first over last level, `late_fall` that of the third over the last quarter, each with the standard
    error of the difference.
    `settled` is the first position from which the level stays near the last one; a moving level is too slow for a fall
    within the first records, which is over with the first of them that is near. `fell` is the logarithm of the first
    over the lowest moving level.
    """

    records: int
    first: float
    last: float
    fall: float
    fall_error: float
    late_fall: float
    late_error: float
    fell: float
    settled: int
    noise: Noise


def levels_of(level: Level | None) -> Levels | None:
    """Measure one curve by its level over `WINDOW`; None for fewer than 12 positive values, or one that has none."""
    if level is None or len(level.y) < _FEWEST:
        return None
    y, place, middle, noise, n = level.y, level.place, level.middle, level.noise, len(level.y)
    head, tail, quarter = max(5, n // 20), n // 5, n // 4
    first, last = median_of(y[:head]), median_of(y[-tail:])
    if first > y[0] + _LEAP or min(y[0], y[1]) - first > _CLEAR * noise.sd:
        first = float(y[0])
    third, fourth = median_of(y[n - 2 * quarter : n - quarter]), median_of(y[-quarter:])
    away = np.abs(middle - fourth) > max(0.02, 4 * noise.of_level(min(51, n / 10)))
    settled = behind_last(away) or _above_at_first(y, fourth, noise)
    return Levels(
        records=n,
        first=ratio_of(first),
        last=ratio_of(last),
        fall=first - last,
        fall_error=hypot(noise.of_level(head), noise.of_level(tail)),
        late_fall=third - fourth,
        late_error=hypot(noise.of_level(quarter), noise.of_level(quarter)),
        fell=first - float(middle.min()),
        settled=int(place[min(settled, n - 1)]),
        noise=noise,
    )


def _above_at_first(y: Floats, level: float, noise: Noise) -> int:
    """Count the first records, a tenth of all at most, that are above a level by more than noise."""
    near = np.flatnonzero(y[: max(1, len(y) // 10)] - level <= max(0.02, _CLEAR * noise.sd))
    return int(near[0]) if len(near) else 0


def from_the_start(curve: Curve) -> bool:
    """Whether the first record is near the first step of a run: within a twentieth of the steps that it spans."""
    first, last = curve.step(0), curve.step(-1)
    return first is None or last is None or first <= max(1, last // 20)
