"""Single slow records among steady ones: warm-up, pauses, and the pauses with a fixed period in steps."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from forensics.analyses.pace.edges import likelihood
from forensics.stats.running import centred_median
from forensics.stats.spread import Floats, each_once, median_of, quantile_of_each, quantiles_of, spread, spread_within

Flags = NDArray[np.bool_]
Steps = NDArray[Any]
_WINDOW = 21  # odd; a centred median keeps an edge of a step where it is
_SIGMAS, _LEAST = 4.0, log(1.25)
_WARM_LEAST, _WARM_SHARE, _WARM_MOST = log(1.15), 0.2, 200
_TEETH, _TEETH_SHARE, _CHANCE = 3, 0.75, log(1e-3)
#: Periods without a pause before the first one: then the pauses began.
QUIET = 2.5
_CANDIDATES, _COMBS, _SPAN = 400, 3, 2_000_000
_NEIGHBOURS = 7  # whose lower quartile is the floor of a series
_PIECE = 1 << 16  # windows that are looked at together, as they are copied
_SAMPLE = 4096  # records that a pattern of at most forty is looked for in


class Spikes(Struct, frozen=True):
    """A series split into a moving level and its outliers: `base`, the flags, and the noise about the base."""

    base: Floats
    far: Flags
    sd: float

    def high(self, logs: Floats) -> Flags:
        """Flag the records that stand out upwards."""
        return self.far & (logs > self.base)


class Comb(Struct, frozen=True):
    """Pauses at steps `phase + k * period` from step `begin` on, and how many there were.

    `chance` bounds the logarithm of the chance that random places have as many; `begun`: some periods before are free.
    """

    period: int
    phase: int
    teeth: int
    begin: int
    chance: float
    begun: bool

    def holds(self, steps: Steps) -> Flags:
        """Flag the steps at which a pause of this period is due."""
        return (steps % self.period == self.phase) & (steps >= self.begin)


def warmup(logs: Floats, noise: float) -> int:
    """Count leading records above the level that follows: compilation, caches, a slow start.

    At most a fifth of the series and 200 records; the level is the median of a window after the first 5 %.
    """
    n = len(logs)
    if n < 12:
        return 0
    most = min(int(_WARM_SHARE * n), _WARM_MOST)
    first = min(most, max(5, n // 20))
    level = median_of(logs[first : first + max(15, min(60, n // 4))])
    slow = logs > level + max(_SIGMAS * noise, _WARM_LEAST)
    count = 0
    while count < most and (slow[count] or np.count_nonzero(slow[count : count + 4]) >= 2):
        count += 1
    return count


def spikes(logs: Floats) -> Spikes:
    """Find the records that differ from the median around them by four deviations and by a quarter."""
    n = len(logs)
    width = min(_WINDOW, (n // 4) * 2 - 1)
    if width < 5:
        return Spikes(np.full(n, median_of(logs)), np.zeros(n, dtype=np.bool_), spread(logs))
    base = centred_median(logs, width)
    sd = max(spread_within(logs - base), 1e-6)
    off = logs - base
    return Spikes(base, np.abs(off, out=off) > max(_SIGMAS * sd, _LEAST), sd)


def combs(places: Steps, first: int, last: int) -> tuple[Comb, ...]:
    """Find periods in the step numbers of pauses, the one that explains most first.

    Needs three teeth and three quarters of those expected, from the first step on or from a tooth on: pauses may begin
    within a run. The number of teeth must be unlikely by chance: Chernoff's bound of a binomial share, times the number
    of periods, phases and begins that were tried, below 0.001.
    """
    found: list[Comb] = []
    rest = places[(places >= first) & (places <= last)].astype(np.int64)
    while len(found) < _COMBS and len(rest) >= _TEETH:
        best = max(_combs_of(rest, first, last), key=lambda pair: (pair[0], pair[1].period), default=None)
        if best is None:
            break
        found.append(best[1])
        rest = rest[~best[1].holds(rest)]
    return tuple(found)


def _combs_of(places: Steps, first: int, last: int) -> Iterator[tuple[float, Comb]]:
    """Every acceptable comb, with the number of teeth above those expected of random places."""
    span = last - first + 1
    periods = [period for period in _periods(places, first, span) if 3 <= period <= span / _TEETH]
    for period in periods:
        phases, counts = np.unique(places % period, return_counts=True)
        phase = int(phases[np.argmax(counts)])
        own = places[places % period == phase]
        begins = np.append(first + (phase - first) % period, own[: 1 - _TEETH])
        teeth = np.append(len(own), np.arange(len(own), _TEETH - 1, -1))
        due = (last - begins) // period + 1
        shares = (len(places) - np.searchsorted(places, begins)) / (last - begins + 1)
        enough = (shares < teeth / due) & (teeth >= _TEETH_SHARE * (due - (begins == begins[0])))
        fits = likelihood(teeth, due) + likelihood(len(places) - teeth, span - due)
        top = int(np.argmax(np.where(enough, fits, -np.inf)))
        tried = log(len(periods) * period) + (log(len(begins)) if top else 0.0)
        chance = tried + _chance(int(teeth[top]), int(due[top]), float(shares[top])) if enough[top] else 0.0
        if chance < _CHANCE:
            begin = int(begins[top])
            comb = Comb(period, phase, int(teeth[top]), begin, chance, begin - first > QUIET * period)
            yield round(float(teeth[top] - shares[top] * due[top]), 9), comb


def _chance(hits: int, trials: int, share: float) -> float:
    """Bound the logarithm of the chance of so many hits or more, where each trial hits with `share` (Chernoff 1952)."""
    missed = (trials - hits) * log((1 - hits / trials) / (1 - share)) if hits < trials else 0.0
    return -hits * log(hits / trials / share) - missed


def _periods(places: Steps, first: int, span: int) -> list[int]:
    """Candidate periods: peaks of the autocorrelation of the places (by FFT), and distances of neighbours."""
    length = min(span, _SPAN)
    marks = np.zeros(length)
    inside = places - first
    marks[inside[inside < length]] = 1.0
    size = 1 << (2 * length - 1).bit_length()
    wave = np.fft.rfft(marks - marks.mean(), size)
    power = np.fft.irfft((wave * np.conj(wave)).real, size)[:length]
    lags = np.arange(length)
    score = np.where((lags >= 3) & (lags <= span / 3), power / np.sqrt(np.maximum(length - lags, 1)), -np.inf)
    peaks = np.argpartition(-score, min(25, length - 1))[:25]
    near = each_once(np.diff(places))[:40]
    return [int(p) for p in each_once(np.concatenate([peaks, near]))[:_CANDIDATES]]


def by_record(logs: Floats) -> tuple[int, Floats] | None:
    """Find a pattern that repeats every few records, as an evaluation inside every k-th does, and take it out.

    Gives the period in records (2 to 40) and the series without the pattern; None when there is none. The pattern is
    the median per phase of what a moving mean over one period leaves (classical decomposition).
    """
    n = len(logs)
    if n < 24:
        return None
    low, high = quantiles_of(logs[:_SAMPLE], [0.02, 0.98])
    calm = np.clip(logs[:_SAMPLE], low, high)
    calm = calm - calm.mean()
    power = float(calm @ calm) + 1e-12
    acf = [float(calm[lag:] @ calm[:-lag]) / power for lag in range(1, min(40, n // 6) + 1)]
    top = max(acf[1:])
    if top <= 0.5 or acf[0] >= 0.5 * top:
        return None
    period = next(lag for lag, value in enumerate(acf, start=1) if value > 0.8 * top)
    if period < 2 or n < 6 * period:
        return None
    return period, logs - _pattern(logs, period)


def _pattern(logs: Floats, period: int) -> Floats:
    kernel = np.ones(period + 1 - period % 2)
    if period % 2 == 0:
        kernel[[0, -1]] = 0.5
    kernel /= kernel.sum()
    half = len(kernel) // 2
    off = logs - np.convolve(np.pad(logs, half, mode="reflect"), kernel, "valid")
    medians = np.array([median_of(off[phase::period]) for phase in range(period)])
    medians -= median_of(medians)
    return np.asarray(medians[np.arange(len(logs)) % period], dtype=np.float64)


def winsorised(logs: Floats, found: Spikes) -> Floats:
    """Replace spikes by the level around them, and pull the rest to at most three deviations from it."""
    calm = logs - found.base
    calm[found.far] = 0.0
    np.clip(calm, -3 * found.sd, 3 * found.sd, out=calm)  # of millions each copy counts
    calm += found.base
    return calm


def floor_of(logs: Floats) -> Floats:
    """Give the lower quartile of seven neighbours: the level where noise only ever adds time."""
    return np.concatenate([_quartiles(own) for _, own in _around(logs)])


def over_floor(logs: Floats, least: float) -> Floats:
    """Give by how much each record is above its floor (`floor_of`); 0 where that is `least` or less.

    A quartile takes a hundred times as long as the lowest of the neighbours, and only few records are far above that.
    """
    over = np.zeros(len(logs))
    for first, own in _around(logs):
        part, lowest = logs[first : first + _PIECE], own[:, 0].copy()
        for place in range(1, _NEIGHBOURS):
            np.minimum(lowest, own[:, place], out=lowest)
        far = np.flatnonzero(part - lowest > least)
        over[first + far] = part[far] - _quartiles(own[far])
    over[over <= least] = 0.0
    return over


def _around(logs: Floats) -> Iterator[tuple[int, Floats]]:
    """The neighbours of each record, of some at a time, beside the place of the first; the ends are repeated."""
    half = _NEIGHBOURS // 2
    for first in range(0, len(logs), _PIECE):
        places = np.arange(first - half, min(first + _PIECE, len(logs)) + half).clip(0, len(logs) - 1)
        yield first, np.lib.stride_tricks.sliding_window_view(logs[places], _NEIGHBOURS)


def _quartiles(around: Floats) -> Floats:
    """The lower quartile of each window."""
    return quantile_of_each(around, 0.25)


def share_of_time(seconds: Floats, flags: Flags) -> float:
    """Share of the whole time that the flagged records take beyond the median of the others."""
    calm = seconds[~flags]
    if not flags.any() or not len(calm):
        return 0.0
    usual = median_of(calm)
    return float((seconds[flags] - usual).clip(min=0.0).sum() / max(seconds.sum(), 1e-300))
