"""Whether pauses became more frequent, or began: the trace of a starving loader or a new save interval."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from msgspec import Struct

from forensics.analyses.pace.edges import likelihood
from forensics.analyses.pace.pauses import QUIET, Flags, Steps, over_floor
from forensics.analyses.pace.steady import Steady
from forensics.stats.spread import Floats, median_of

_FEWEST = 8  # starts of slow runs below which their rate has no change
_LEAST_LR = 28.0  # twice the log-likelihood ratio that a change of the rate must pass (1 in 10^6 by chance and scan)
_FEWEST_BEGUN, _MOST = 4, 12  # pauses that can be no chance, and the most heights that are tried
_STANDS = log(1.25)  # a record that is above the lower quartile of its neighbours by so much holds a pause
#: Three quarters of the distances must be even, to a tenth or a record; shorter ones than four steps are everywhere.
_UNEVEN, _EVEN_SHARE, _SHORTEST = 0.1, 0.75, 4
#: Chance that so many pauses leave so long a begin free: what adds half a step's time is a loss wherever it began, so
#: every slow record counts then, not only the first of each run of them.
_CHANCE, _CHANCE_GRAVE, _GRAVE = log(1e-4), log(2e-3), 0.5
_TALL, _GAP = log(1.5), log(1.15)  # a pause exceeds the level around it, and above it what is lower, by so much
#: Fewest records on either side of a cut of a short series, the most that are short, and how many times the level
#: before it a slow one takes. The likelihood ratio is one of 2 in 1,000 by chance and scan, as `_CHANCE_GRAVE`.
_FEW, _SHORT, _SLOW, _LEAST_LR_SHORT = 8, 60, 1.5, 14.0


class Stalls(Struct, frozen=True):
    """From record `index` on pauses came more often: `added` time per step, relative, and `z` of the change.

    `period` is their distance in steps, 0 where they have none.
    """

    index: int
    added: float
    z: float
    period: int = 0


def stalls_of(series: Steady, *, least_added: float = 0.05) -> Stalls | None:
    """Find where pauses begin, or the best single change of their rate.

    Pauses begin where none is seen before, though as many at random places would have left a trace there, or where
    those that follow keep a distance. The change of a rate is found by a Bernoulli scan over the starts of slow runs
    (Kulldorff 1997): twice the log-likelihood ratio must pass 28, and the added time `least_added` of a step.
    """
    over = over_floor(np.log(series.seconds), _STANDS)
    found = _begun(series, over, least_added) or _begun_regular(series, over, least_added)
    if found is not None or series.multimodal:
        return found
    added = series.excess
    return _more_often(added, _starts(added > 0), least_added)


def turned_slow(series: Steady) -> Stalls | None:
    """Find the cut of a short series after which slow records come that were none before, and add half the time.

    A record of five steps holds a pause of every seventh step in two of three cases: too many to exceed those around
    them, and too uneven for a level. Of 76 healthy jobs of a lab no later part takes more than 1.46 times as long in
    the mean; of 22 slow ones all but three take more than 1.65 times as long.
    """
    seconds, n = series.seconds, len(series)
    best: tuple[float, int] | None = None
    for cut in range(_FEW, n - _FEW + 1) if n <= _SHORT else ():
        slow = seconds > _SLOW * median_of(seconds[:cut])
        early, late = (np.array([int(part.sum())]) for part in (slow[:cut], slow[cut:]))
        if slow[cut] and late[0] >= _FEW:
            apart = likelihood(early, np.array([cut])) + likelihood(late, np.array([n - cut]))
            ratio = 2 * float((apart - likelihood(early + late, np.array([n])))[0])
            best = max(best or (0.0, 0), (ratio, cut))
    if best is None or best[0] < _LEAST_LR_SHORT:
        return None
    ratio, cut = best
    added = float(seconds[cut:].mean() / median_of(seconds[:cut]) - 1)
    return Stalls(cut, added, sqrt(ratio)) if added >= _GRAVE else None


def _begun(series: Steady, over: Floats, least_added: float) -> Stalls | None:
    """The height of pauses for which a free begin is least likely by chance."""
    best: tuple[float, Stalls] | None = None
    for height in _heights(over):
        slow = over >= height
        places = np.flatnonzero(_starts(slow))
        first = int(places[0])
        if len(places) < _FEWEST_BEGUN or not first:
            continue
        added = float(np.where(slow, np.expm1(over), 0.0)[first:].mean())
        counted = int(slow.sum()) if added >= _GRAVE else len(places)
        chance = float(np.log(1 - first / (len(over) - np.arange(counted))).sum())
        period = _period(series, over, places)
        sure = chance < (_CHANCE_GRAVE if added >= _GRAVE else _CHANCE) or period
        if sure and added > least_added and (best is None or chance < best[0]):
            best = chance, Stalls(first, added, sqrt(-2 * chance), period)
    return best[1] if best is not None else None


def _begun_regular(series: Steady, over: Floats, least_added: float) -> Stalls | None:
    """The pauses of the surest period that begins within the series, whatever other pauses there are."""
    steps = series.steps
    begun = [comb for comb in series.pauses if comb.begun and comb.period >= _SHORTEST]
    if not begun:
        return None
    surest = min(begun, key=lambda comb: comb.chance)
    first = int(np.searchsorted(steps, surest.begin))
    added = float(np.where(surest.holds(steps), np.expm1(over), 0.0)[first:].mean())
    return Stalls(first, added, sqrt(-2 * surest.chance), surest.period) if added > least_added else None


def _heights(over: Floats) -> Floats:
    """Heights that tell pauses from lower records: those with a gap below them."""
    ranked = np.sort(over[over > _STANDS])[::-1]
    gaps = np.append(-np.diff(ranked), np.inf)
    found = ranked[(gaps >= _GAP) & (ranked > _TALL)]
    return found[np.searchsorted(-ranked, -found, side="right") >= _FEWEST_BEGUN][:_MOST]


def _period(series: Steady, over: Floats, places: Steps) -> int:
    """The distance in steps that most pauses keep, without a pause at the earlier places; 0 for none."""
    at = series.steps[places]
    usual = median_of(np.diff(at))
    teeth = at[np.concatenate([[True], np.diff(at) > usual / 2])]
    gaps = np.diff(teeth)
    period = int(median_of(gaps)) if len(gaps) else 0
    near = max(median_of(np.diff(series.steps)), _UNEVEN * period)
    if period < _SHORTEST or len(gaps) < _FEWEST_BEGUN or np.mean(np.abs(gaps - period) <= near) < _EVEN_SHARE:
        return 0
    quiet = int(teeth[0]) - int(series.steps[0]) > QUIET * period
    tall = over[: places[0]] > max(_STANDS, median_of(over[places]) / 2)
    return period if quiet and not tall.any() else 0


def _more_often(excess: Floats, starts: Flags, least_added: float) -> Stalls | None:
    n, total = len(excess), int(starts.sum())
    if total < _FEWEST:
        return None
    place = np.arange(1, n, dtype=np.float64)
    early = np.cumsum(starts)[:-1].astype(np.float64)
    late = total - early
    ratio = 2 * (likelihood(early, place) + likelihood(late, n - place) - likelihood(np.array([total]), np.array([n])))
    edge = max(20, n // 50)
    allowed = (place >= edge) & (place <= n - edge) & (late / (n - place) > early / place)
    if not allowed.any():
        return None
    best = int(np.argmax(np.where(allowed, ratio, -1.0)))
    cut = best + 1
    added = float(excess[cut:].mean() - excess[:cut].mean())
    if ratio[best] <= _LEAST_LR or added <= least_added:
        return None
    return Stalls(cut, added, float(ratio[best] ** 0.5))


def _starts(slow: Flags) -> Flags:
    """Keep the first record of each run: a restart's slow burst is one event."""
    first = slow.copy()
    first[1:] &= ~slow[:-1]
    return first
