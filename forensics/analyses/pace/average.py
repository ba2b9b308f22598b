"""Averages since the start of a run: recognising them, and getting back the times that went into them."""

from __future__ import annotations

import numpy as np

from forensics.analyses.pace.pauses import Steps
from forensics.stats.spread import Floats, median_of

_FEWEST, _STEEP, _POSITIVE = 60, -0.7, 0.98
#: So many records are looked at together: of millions, what is made of each takes as much memory as they do.
_PIECE = 1_000_000


def is_running_average(values: Floats, counts: Steps) -> bool:
    """Whether changes from record to record die out as 1 / k, as in an average over all steps so far.

    The slope of the log of the smoothed changes on the log of the step count, after the first tenth; an average has -1,
    noise about a level 0. And what went into an average is positive: noise about a level, taken apart as if it were an
    average, is not. Fewer than sixty records cannot tell; a rate of zero, an endless time, is no average of any.
    """
    if not np.isfinite(values).all():
        return False
    late = len(values) // 10
    if len(values) - 1 - late < _FEWEST or counts[late + 1 :].min(initial=1) <= 0 or not is_of_times(values, counts):
        return False
    moves, place = np.abs(np.diff(values))[late:], np.asarray(counts, dtype=np.float64)[late + 1 :]
    lengths = (len(moves), len(moves) // 2, len(moves) // 3)
    return any(n >= _FEWEST and _dies_out(moves[:n], place[:n]) for n in lengths)


def is_of_times(values: Floats, counts: Steps) -> bool:
    """Whether values can be averages since the start: what went into them, after the first tenth, took time."""
    late, above = len(values) // 10, 0
    for first in range(late, len(values), _PIECE):
        before = max(first - 1, 0)
        times = undone(values[before : first + _PIECE], counts[before : first + _PIECE])
        above += int(np.count_nonzero(times[first - before :] > 0))
    return len(values) > late and above / (len(values) - late) >= _POSITIVE


def _dies_out(moves: Floats, place: Floats) -> bool:
    """Whether changes fall as 1 / k; the caller asks the first part alone too, as a jump later on hides it."""
    parts = np.array_split(np.arange(len(moves)), 12)
    heights = np.array([median_of(moves[part]) for part in parts])
    middles = np.array([place[part].mean() for part in parts])
    if (heights <= 0).any() or middles[-1] < 2 * middles[0]:
        return False
    return float(np.polyfit(np.log(middles), np.log(heights), 1)[0]) < _STEEP


def undone(averages: Floats, counts: Steps) -> Floats:
    """Seconds per step between neighbouring records, from averages since step 0; the first record stays as it is.

    `counts` are the steps averaged over. t = (k a(k) - j a(j)) / (k - j); values that rounding made negative are kept,
    so that the caller sees them.
    """
    k = np.asarray(counts, dtype=np.float64)
    times = np.empty(len(k))
    times[:1], behind = averages[:1], times[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        np.subtract(averages[1:] * k[1:], averages[:-1] * k[:-1], out=behind)
        np.divide(behind, np.diff(k), out=behind)
    return times


def undone_quantum(quantum: float, counts: Steps) -> float:
    """Unit of an undone average whose averages are printed in steps of `quantum`, at the median record."""
    k = np.asarray(counts, dtype=np.float64)
    if len(k) < 2:
        return quantum
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = quantum * (k[1:] + k[:-1]) / 2 / np.abs(np.diff(k))
    return median_of(spread)
