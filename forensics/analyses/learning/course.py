"""Where a loss left its course: spikes that recover, and explosions, rises, jumps and steps that do not.

All on the logarithm of the loss. An explosion is told by its height, after any number of records. From enough records
on there are three tests: a spike exceeds its own past and the largest excursion downwards; a jump is a step of the
level less the slopes on both sides; a climb is a last level above the lowest one by more than the lowest of many noisy
levels lies too low by chance.
"""

from __future__ import annotations

from math import exp, hypot, log, sqrt

import numpy as np
from msgspec import Struct

from forensics.analyses.learning.levels import Level
from forensics.analyses.learning.limits import Limits
from forensics.analyses.learning.spikes import Spike, onset_of, spikes_of
from forensics.stats.correlation import Noise, noise_about
from forensics.stats.running import Places, centred_median, moving_median, ratio_of
from forensics.stats.spread import Floats, median_of, spread
from forensics.values import replace

#: No fall of a loss is told from noise below this share of it.
_NO_FALL = 0.03
#: A value that is a sum over all records so far grows with their number, and is no loss of a step.
_SUMMED = 1.5
#: Stages of a plan: so few single records hold the whole rise.
_STAGES = 3
#: Steps nearer to each other than this are one rise that takes several records.
_ISOLATED = 3
_HALF = 0.5
#: So many records before a rise tell the level that it left.
_NEIGHBOURS = 10
#: So many on either side tell a level that turns at once.
_NEARBY = 5
#: What they hold of a step of the level; the lowest of some such levels lies so many errors below the level.
_MOST_OF, _LUCK = 0.75, 1.0
#: A spike of this share of another one's height that recovered says that the other may.
_SIMILAR = 0.7
#: Records after a departure that tell what became of it, in a short series.
_FEWEST_LEFT = 4
#: Records at the end that no noise lifts together: each is 2.5 deviations up or more.
_LATE = 3
#: So many times the lowest records, all records behind them gave back what was learned: healthy ones fall.
_GAVE_BACK = 1.5


class Departure(Struct, frozen=True):
    """A loss that left its level and did not come back.

    `onset` is a position in the curve. `size` is the ratio of the levels at the onset, `net` the last level in ratio to
    the level just before the onset, `rise` in ratio to the lowest level, `above` in ratio to the first; `best` and
    `final` are the lowest and the last level themselves. `how` is `explosion`, `spike` (a burst that did not recover),
    `jump` or `climb`. `climbing`: the last levels are above the lowest one by more than chance. `stays`: no record
    after the rise came back half of the way. `slope`: the loss falls (-1) or rises (1) after it by more than chance.
    `stepwise`: single records hold the whole rise, and the loss does not rise between them. `clear`: the rise is many
    times the noise of one record. `left` of all `records` follow. `risen` is the position of the first record at half
    of the rise or above: what is measured before it does not see the rise.
    """

    onset: int
    risen: int
    size: float
    net: float
    rise: float
    above: float
    best: float
    final: float
    how: str
    climbing: bool
    stays: bool
    slope: int
    stepwise: bool
    clear: bool
    left: int
    records: int

    @property
    def lost(self) -> float:
        """The share of the learned fall, from the first level to the lowest, that the rise gives back."""
        learned = self.final / self.above - self.best
        return (self.final - self.best) / learned if learned > 0 else 1.0


class Course(Struct, frozen=True):
    """The course of a curve: the spikes that recovered, and the place where it left for good."""

    spikes: tuple[Spike, ...]
    departure: Departure | None


def course_of(level: Level | None, limits: Limits) -> Course | None:
    """Follow the level of one curve, over `limits.window`; None for one that is not positive by nature, or a sum."""
    if level is None or _is_sum(level.y):
        return None
    y, place, n = level.y, level.place, len(level.y)
    gone = _exploded(level, limits) or _burst(level, limits)
    if n < limits.records:
        return Course((), _placed(gone or _given_back(level, limits), place))
    jump = _jump_of(y, level.noise, limits)
    spikes, lost = spikes_of(level, level.skip, limits)
    if jump is not None and any(abs(jump[0] - s.index) <= _span_of(n) for s in spikes):
        jump = None
    if lost is not None and n - lost.index < limits.left and any(s.peak > _SIMILAR * lost.peak for s in spikes):
        lost = None
    gone = gone or _departure(level, jump, lost, limits)
    return Course(tuple(s.at(place) for s in spikes), _placed(gone, place))


def _placed(gone: Departure | None, place: Places) -> Departure | None:
    return None if gone is None else replace(gone, onset=int(place[gone.onset]), risen=int(place[gone.risen]))


def _is_sum(y: Floats) -> bool:
    """Whether values only grow, and no faster than a sum over all records so far does."""
    grows = len(y) > _STAGES and bool((np.diff(y) > 0).all())
    return grows and bool((y <= y[0] + np.log(_SUMMED * np.arange(1, len(y) + 1))).all())


def _exploded(w: Level, limits: Limits) -> Departure | None:
    """Find a loss that rose far above its first value and ends no lower than that."""
    y, n = w.y, len(w.y)
    peak = int(np.argmax(y))
    if (
        y[peak] < max(y[0] + log(limits.exploded), log(limits.burst_least))
        or median_of(y[-max(1, n // 10) :]) < y[0] - _NO_FALL
    ):
        return None
    return _left(w, int(np.argmin(y[:peak])), "explosion", limits)


def _burst(w: Level, limits: Limits) -> Departure | None:
    """Find a loss whose last two records or more are far above all before them."""
    y, n = w.y, len(w.y)
    least = np.maximum.accumulate(y)[:-2]
    told = n if n >= limits.records else max(0, n - limits.burst_left)  # what follows these is enough to tell
    least[:told] += np.log(limits.burst)
    least[told:] += np.log(limits.burst_few)
    np.maximum(least, log(limits.burst_least), out=least)
    if not bool((np.minimum.accumulate(y[::-1])[::-1][1:-1] > least).any()):
        return None
    return _left(w, int(np.argmin(y[:-2])), "explosion", limits)


def _given_back(w: Level, limits: Limits) -> Departure | None:
    """Find where, of few records, all that follow are far above the lowest ones before, which are no single dip."""
    y, n = w.y, len(w.y)
    for onset in range(_LATE, n - limits.burst_left + 1):
        lowest = np.sort(y[:onset])[:_LATE]
        if y[onset:].min() > lowest[-1] + log(_GAVE_BACK):
            size = float(y[onset:].max() - lowest[-1])
            told = _told(w, (int(np.argmin(y[:onset])), onset), (size, "spike"), limits, last=n - onset)
            return replace(told, best=exp(float(lowest[-1])))
    return None


def _left(w: Level, low: int, how: str, limits: Limits) -> Departure:
    """Describe a rise from a low record on that is made at once or step by step."""
    y, n = w.y, len(w.y)
    level, sd = float(y[low]), 0.1
    if low > _HALF * limits.records:
        level, sd = _usual(y[: low + 1])
    high = low + 1 + int(np.argmax(y[low + 1 :] > y[low] + _HALF * (y.max() - y[low])))
    onset = onset_of(y, low, high, level, sd)
    return _told(
        w, (low, onset), (float(y[low + 1 :].max() - y[low]), how), limits, last=max(1, min(n // 10, n - onset))
    )


def _usual(past: Floats) -> tuple[float, float]:
    """Give the level at the end of a stretch and the noise of one record: its lowest record is below both."""
    middle = centred_median(past, 2 * _NEIGHBOURS + 1)
    return median_of(past[-_NEIGHBOURS:]), noise_about(past, middle).sd


def _departure(w: Level, jump: tuple[int, float] | None, lost: Spike | None, limits: Limits) -> Departure | None:
    y, middle, noise, n = w.y, w.middle, w.noise, len(w.y)
    last = min(max(10, min(w.window, n // 10)), n // 4)
    final = median_of(y[-last:])
    past = middle[w.skip : n - last] if n - last > w.skip else middle
    low = int(np.argmin(past)) + (w.skip if n - last > w.skip else 0)
    least, rise = float(middle[low]), final - float(middle[low])
    chance = sqrt(2 * log(max(n / w.window, 2))) * noise.of_level(w.window)
    bound = chance + limits.climb_z * hypot(noise.of_level(w.window), noise.of_level(last))
    bound = max(bound, log(limits.climb))
    ending = middle[low:][-max(last, (n - low) // 3) :]
    bound = max(bound, limits.over_waves * _wave(middle[max(w.skip, n // 10) : low]))
    kept = float((ending > least + bound / 2).mean()) > limits.kept
    climbing = rise > bound and kept
    if not climbing and _rises_late(w, least, limits):
        climbing, last = True, _LATE
        rise = median_of(y[-last:]) - least
    # a climb of many records is no jump, however steep, and a spike that it makes is part of it
    climbs = climbing and (jump is None or low > jump[0] + 2 * _span_of(n) or not _is_sharp(y, jump))
    if lost is not None and jump is not None and not climbs and -1 <= (lost.index - jump[0]) / _span_of(n) <= 2:
        onset, told = min(lost.index, _sharpened(y, jump[0])), (jump[1], "jump")
    elif lost is not None and not (climbs and jump is not None):
        onset, told = lost.index, (log(lost.peak), "spike")
    elif climbs:
        above = low + int(np.argmax((y if last == _LATE else middle)[low:] > least + _HALF * rise))
        turn, level = _turn(w, low, above)
        onset, told = onset_of(y, turn, above, level, noise.sd), (rise, "climb")
    elif jump is not None:
        onset, told = _sharpened(y, jump[0]), (jump[1], "jump")
    else:
        return None
    return replace(_told(w, (low, onset), told, limits, last=last), climbing=bool(climbing))


def _is_sharp(y: Floats, jump: tuple[int, float]) -> bool:
    """Whether a few records on both sides hold a step of the level: a climb is one over many of them alone."""
    at = _sharpened(y, jump[0])
    sides = y[at : at + _NEARBY], y[max(0, at - _NEARBY) : at]
    return median_of(sides[0]) - median_of(sides[1]) >= _MOST_OF * jump[1]


def _turn(w: Level, low: int, above: int) -> tuple[int, float]:
    """Where a loss that falls and then climbs turns, and its level there: medians of many lie above a sharp one."""
    first = max(w.skip, low - w.window // 2)
    levels = centred_median(w.y[first : min(above, low + w.window // 2) + 1], 2 * _NEARBY + 1)
    at = int(np.argmin(levels))
    return first + at, float(levels[at]) + _LUCK * w.noise.of_level(2 * _NEARBY + 1)


def _rises_late(w: Level, least: float, limits: Limits) -> bool:
    """Whether the last records alone are clearly above the level, where no others were since it was reached."""
    y, n = w.y, len(w.y)
    rise = median_of(y[-_LATE:]) - least
    half = least + _HALF * rise
    if rise <= _clear(w.noise, limits) or float(y[-_LATE:].min()) <= half:
        return False
    below = np.flatnonzero(y <= half)
    before = y[int(np.argmax(y <= least)) : int(below[-1]) + 1 - n // 10]
    return len(before) < _LATE or float(np.lib.stride_tricks.sliding_window_view(before, _LATE).min(1).max()) <= half


def _clear(noise: Noise, limits: Limits) -> float:
    """Give the rise, in logarithms, that one record tells from noise."""
    return max(log(limits.rise), limits.sigmas * noise.sd)


def _told(w: Level, place: tuple[int, int], told: tuple[float, str], limits: Limits, *, last: int) -> Departure:
    y, n = w.y, len(w.y)
    (low, onset), (size, how) = place, told
    final, before = median_of(y[-last:]), median_of(y[max(0, onset - _span_of(n)) : max(onset, 1)])
    exploded = how == "explosion"
    least = float(y[low] if exploded else w.middle[low])
    half = y[onset:] >= before + _HALF * (final - before)
    risen = onset + (int(np.argmax(half)) if half.any() else 0)
    return Departure(
        onset=onset,
        risen=risen,
        size=ratio_of(size),
        net=ratio_of(final - before),
        rise=ratio_of(final - least),
        above=ratio_of(final - float(y[0] if exploded else median_of(y[: max(1, min(5, n // 20))]))),
        best=exp(least),
        final=exp(final),
        how=how,
        climbing=exploded,
        stays=bool(y[risen:].min() > before + _HALF * min(size, final - before)),
        slope=_slope(y[onset + min(_span_of(n), (n - onset) // 3) :], w.noise),
        stepwise=not exploded and _stepwise(y, onset, low),
        clear=final - least > _clear(w.noise, limits),
        left=n - onset,
        records=n,
    )


def _stepwise(y: Floats, onset: int, low: int) -> bool:
    """Whether a few single records, each by itself, hold the whole rise of a loss that falls between them."""
    first = max(0, min(low, onset - 1))
    moves = np.diff(y[first:])
    sd = spread(moves)
    steps = np.flatnonzero(moves > 4 * sd + _NO_FALL)
    if not 0 < len(steps) <= _STAGES or bool((np.diff(steps) <= _ISOLATED).any()):
        return False
    after = onset - first
    return float(moves[after:].sum() - moves[steps[steps >= after]].sum()) < -4 * sd * sqrt(len(steps))


def _wave(levels: Floats) -> float:
    """Give the largest rise above all levels before it, of a stretch that ends at its lowest level: it came back."""
    return float((levels - np.minimum.accumulate(levels)).max()) if len(levels) else 0.0


def _slope(after: Floats, noise: Noise) -> int:
    half = len(after) // 2
    if half < 1:
        return 0
    change = median_of(after[half:]) - median_of(after[:half])
    bound = 3 * hypot(noise.of_level(half), noise.of_level(len(after) - half))
    return (change > bound) - (change < -bound)


def kind_of(d: Departure, limits: Limits) -> str:
    """Name a departure: `divergence`, `level_shift`, or `unresolved` when too few records follow to tell.

    A jump after which the level stays is a level shift, however high; so is a rise that falls again by itself.
    """
    if d.how == "explosion":
        return "divergence"
    enough = max(_FEWEST_LEFT, d.records // 5) if d.clear and (d.stays or d.climbing) else limits.left
    if d.left < min(limits.left, enough):
        return "unresolved"
    if d.how == "jump" and max(d.rise, d.net) < limits.far and d.size < limits.big and d.slope <= 0:
        return "level_shift"
    if d.climbing or d.net > limits.near:
        return "divergence" if d.net > limits.far or d.size > limits.big or d.slope >= 0 else "level_shift"
    return "divergence" if d.size > limits.big and d.slope > 0 else "level_shift"


def _span_of(n: int) -> int:
    """The records of one side of a jump: a twelfth of all, 8 to 50."""
    return int(min(50, max(8, n // 12)))


def _jump_of(y: Floats, noise: Noise, limits: Limits) -> tuple[int, float] | None:
    """Find the largest step of the level that the slopes on both sides do not explain: its index and size in logs."""
    n, w = len(y), _span_of(len(y))
    first, count = max(5 * w, n // 10), n - 2 * w + 1 - max(5 * w, n // 10)
    if count <= 0:
        return None
    level = moving_median(y, w)  # of each record and the w - 1 behind it
    earlier, before, after, later = (level[first + k * w :][:count] for k in (-2, -1, 0, 1))
    step = after - before
    beyond = later - after
    beyond += before - earlier
    np.subtract(step, np.multiply(beyond, 0.5, out=beyond), out=beyond)
    beyond[~(step > limits.jump_level_z * noise.of_level(w) * sqrt(2))] = -1.0
    at = int(np.argmax(beyond))
    z = float(beyond[at]) / (noise.of_level(w) * sqrt(5))  # variance of after - before less half of both slopes
    if z <= limits.jump_z or beyond[at] <= log(limits.jump):
        return None
    return first + at, float(beyond[at])


def _sharpened(y: Floats, at: int) -> int:
    """A step, put where the cumulative sum of the values around it turns (CUSUM)."""
    w = _span_of(len(y))
    start = max(0, at - w)
    part = y[start : at + w]
    sums = np.cumsum(part - part.mean())[:-1]
    k = np.arange(1, len(part))
    return start + int(np.argmax(-sums / np.sqrt(k * (len(part) - k)))) + 1
