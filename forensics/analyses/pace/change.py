"""Finds a slowdown of steps, its begin, and its form: a level, a ramp, or pauses that begin.

Two tiers. A change that noise without long memory cannot explain is *possible*; one that also holds when the noise is
extrapolated to the length of the parts, as 1/f noise demands, is *confirmed*. The method and what it was measured on:
docs/explanation/slowdown.md.
"""

from __future__ import annotations

from math import exp, log
from typing import Literal

import numpy as np
from msgspec import Struct

from forensics.analyses.pace.edges import sharpest_edge
from forensics.analyses.pace.levels import Bounds, Levels, blocks, levels
from forensics.analyses.pace.ramp import Ramp, ramp_of
from forensics.analyses.pace.stalls import Stalls, stalls_of, turned_slow
from forensics.analyses.pace.steady import SHORTEST, Steady
from forensics.stats.changes import best_cut
from forensics.stats.spread import Floats, median_of
from forensics.values import replace

Kind = Literal["lasting", "transient"]
Form = Literal["jump", "stairs", "ramp", "stalls", "pauses"]

_MODES_Z = 1.5  # how much further a change must exceed a series with modes to be confirmed
_SHARE = 0.2  # of the whole rise: a part that is slower by less has not left its past
_BACK = log(1.1)  # within so much of the best level a clock has come back from a much higher one
_STANDS = 4.0  # deviations by which a record of slow and fast steps exceeds those before it
_NEAR = 40  # records on either side of a cut of blocks within which the exact record is looked for
_EVEN = 0.15  # rises whose distances and heights differ by no more than this come from a schedule
#: Rises in a row that make a schedule; two may be two faults, unless both add the same seconds, as two equal parts of a
#: model or of a batch do. In public runs of two such stages the rises differ by 1 %; of two faults, seldom below 20 %.
_FEWEST_STAIRS, _TWO_STAIRS, _ALIKE = 3, 2, 0.1
#: What counts as slower: a relative effect (and its logarithm), deviations at infinite length, and what is confirmed.
_EFFECT, _LEAST, _Z, _CAP = 0.05, log(1 + 0.05), 4.2, 1.6
_BRIEF = 20  # fewest records of a slow stretch that ended
#: Medians of so many records in a row are compared by their ranks, so many on either side at least, where steps take so
#: many times as long: noise of 25 %, correlated by 0.4, does not order this share of the pairs.
_BLOCK, _BLOCKS, _PLAIN, _ORDERED = 5, 4, 1.5, 0.95


class Change(Struct, frozen=True):
    """A slowdown: first and last slow record (positions in the steady series), how much, and how sure.

    `before` is the best steady level until then, in seconds, `ratio` the time per step after it over that; for stalls
    and pauses, one plus the added time. `end` is the record after the last slow one. `cuts` are all records at which
    the level changed. `period` is the distance of pauses in steps, 0 where they have none. `parted`: blocks of a
    slow stretch that ended rank above those of the other records, whatever the noise is made of.
    """

    kind: Kind
    form: Form
    first: int
    end: int
    before: float
    ratio: float
    z: float
    confirmed: bool
    cuts: tuple[int, ...] = ()
    period: int = 0
    parted: bool = False


def change_of(series: Steady) -> Change | None:
    """Find the slowdown of a series, or nothing; a lasting one before a transient one.

    Of a new level and of pauses that begin, the one that costs more time is reported.
    """
    found = _change_of(series)
    return found if found is None or found.kind == "lasting" else replace(found, parted=_is_parted(series, found))


def _is_parted(series: Steady, change: Change) -> bool:
    """Whether blocks of records of the slow stretch rank above those of the others (Mann and Whitney 1947)."""
    if change.ratio < _PLAIN or series.multimodal:
        return False
    slow = _medians(series.logs[change.first : change.end])
    fast = np.concatenate([_medians(series.logs[: change.first]), _medians(series.logs[change.end :])])
    if min(len(slow), len(fast)) < _BLOCKS:
        return False
    return float((slow[:, None] > fast[None, :]).mean()) >= _ORDERED


def _medians(logs: Floats) -> Floats:
    """The medians of a stretch by blocks; what is left at its end is no block."""
    whole = logs[: len(logs) // _BLOCK * _BLOCK]
    return np.median(whole.reshape(-1, _BLOCK), axis=1)


def _change_of(series: Steady) -> Change | None:
    by_level, pauses = _lasting(series), _of_stalls(series, stalls_of(series, least_added=_EFFECT))
    if by_level is not None and by_level.kind == "lasting" and (pauses is None or by_level.ratio >= pauses.ratio):
        return by_level
    return pauses or _of_stalls(series, turned_slow(series)) or by_level


def _lasting(series: Steady) -> Change | None:
    """The change of the level, or the ramp, of a series; a transient one where none lasts."""
    values = series.values
    usual = _levels(series, values)
    ramp = ramp_of(values, usual)
    found = _level_change(series, usual, cap=1.0, ramp=ramp)
    if found is not None and found.kind == "lasting":
        strict = _level_change(series, _levels(series, values, _CAP), cap=_CAP)
        sure = strict is not None and strict.kind == "lasting"
        if found.form == "ramp" and not sure:  # to levels a climb is noise of long memory; the climb itself may be sure
            alone = _ramp_alone(series, ramp)
            return alone if alone is not None and alone.confirmed else replace(found, confirmed=False)
        return replace(found, confirmed=sure and (not series.multimodal or found.z >= _MODES_Z * _Z))
    return _ramp_alone(series, ramp) or found


def _levels(series: Steady, values: Floats, cap: float = 1.0) -> Levels:
    """The levels of a series by its `values`: bounds by its length and kind."""
    values, block = blocks(values)
    n = len(values)
    shortest = min(max(SHORTEST, min(30, n // 20)), max(4, n // 4))
    z = _Z * (1 + 4 / n)
    if series.multimodal:
        shortest, z = max(shortest, min(50 // block + 1, n // 5)), 1.15 * z
    return levels(values, block, Bounds(z, _LEAST, shortest, cap))


def _level_change(series: Steady, found: Levels, *, cap: float, ramp: Ramp | None = None) -> Change | None:
    means = np.asarray(found.means)
    best = np.minimum.accumulate(means)
    # a level that is hardly above the best one, beside one that is far above it, is no slow one
    least = max(0.999 * _LEAST, min(_SHARE * float((means - best).max()), _BACK))
    slow = (means - best >= least) & (means - means[0] >= least)
    if not slow.any():
        return None
    cuts = tuple(edge * found.block for edge in found.edges[1:-1])
    if not slow[-1]:
        return _transient(series, found, slow, cuts)
    rise = float(means[-1] - best[-1])
    part = len(means) - 1
    while slow[part - 1] and means[part - 1] - best[part - 1] >= _SHARE * rise:
        part -= 1
    z = found.z(part, cap)
    if z <= _Z * (1 + 4 / found.edges[-1]):
        return None
    before = float(means[:part].min())
    return Change(
        kind="lasting",
        form="ramp" if ramp is not None else "stairs" if _even_stairs(found, part) else "jump",
        first=_exactly(series, found, part) if ramp is None else min(len(series) - 1, ramp.first + 1),
        end=len(series),
        before=exp(before),
        ratio=exp(float(means[-1]) - before),
        z=z,
        confirmed=False,
        cuts=cuts,
    )


def _even_stairs(found: Levels, part: int) -> bool:
    """Whether the level rises by the same at the same distances, or twice by the same seconds, as a schedule does."""
    edges, means = np.diff(found.edges[part:-1]), np.diff(np.asarray(found.means[part - 1 :]))
    if len(means) == _TWO_STAIRS:
        added = np.diff(np.exp(found.means[part - 1 :]))
        return bool(added.min() > 0 and np.ptp(added) <= _ALIKE * added.mean())
    if len(means) < _FEWEST_STAIRS:
        return False
    return all(float(np.ptp(each)) <= 2 * _EVEN * float(np.mean(each)) for each in (edges, means))


def _ramp_alone(series: Steady, ramp: Ramp | None) -> Change | None:
    """A climb that the levels do not show, since the ramp itself looks like noise of long memory to them."""
    if ramp is None or ramp.rise < _LEAST or ramp.z <= _Z * (1 + 4 / len(series)):
        return None
    return Change(
        kind="lasting",
        form="ramp",
        first=min(len(series) - 1, ramp.first + 1),
        end=len(series),
        before=exp(ramp.before),
        ratio=exp(ramp.rise),
        z=ramp.z,
        confirmed=ramp.z >= _MODES_Z * _Z and not series.multimodal,
    )


def _of_stalls(series: Steady, stalls: Stalls | None) -> Change | None:
    if stalls is None:
        return None
    return Change(
        "lasting",
        "pauses" if stalls.period else "stalls",
        stalls.index,
        len(series),
        median_of(series.seconds),
        1 + stalls.added,
        stalls.z,
        confirmed=True,
        period=stalls.period,
    )


def _transient(series: Steady, found: Levels, slow: np.ndarray, cuts: tuple[int, ...]) -> Change | None:
    first = int(np.argmax(slow))
    last = first
    while slow[last]:
        last += 1
    if (found.edges[last] - found.edges[first]) * found.block < _BRIEF:
        return None
    top = max(found.means[first:last])
    size = found.size(first, last)
    before = min(found.means[:first])
    z = (top - before) / (found.noise.sd * (1 / size + 1 / found.size(0, first)) ** 0.5)
    return Change(
        kind="transient",
        form="jump",
        first=_exactly(series, found, first),
        end=_exactly(series, found, last),
        before=exp(before),
        ratio=exp(top - before),
        z=z,
        confirmed=False,
        cuts=cuts,
    )


def _exactly(series: Steady, found: Levels, part: int) -> int:
    """Find the record at which a part begins, between its neighbours and near where it was found."""
    near = max(3 * found.block, _NEAR)
    edge = found.edges[part] * found.block
    first = max(found.edges[part - 1] * found.block, edge - near)
    end = min(found.edges[part + 1] * found.block, edge + near)
    logs = series.logs[first:end]
    if series.shared or series.multimodal:
        cut = sharpest_edge(logs)
    else:  # not the values: what is set aside as a spike beside a cut may be the last record before it
        low, high = sorted(found.means[part - 1 : part + 1])
        best = best_cut(np.clip(logs, low, high), 2)
        cut = best[0] if best is not None else None
    return edge if cut is None else _partly(series, found, part, first + cut)


def _partly(series: Steady, found: Levels, part: int, cut: int) -> int:
    """Give the record before a cut where records are of several steps and that one is partly slow.

    The steps before it are fast ones, those after it slow, and one record holds both.
    """
    before, rise = found.means[part - 1], found.means[part] - found.means[part - 1]
    over = series.logs[cut - 1] - before
    several = cut > 1 and series.steps[cut - 1] - series.steps[cut - 2] > 1
    return cut - 1 if several and over >= max(_SHARE * rise, _STANDS * series.spikes.sd) else cut
