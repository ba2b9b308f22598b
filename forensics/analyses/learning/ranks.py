"""Losses, gradient norms and rates that each rank of a run logged: where one rank leaves the others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from forensics.analyses.learning.losses import judged
from forensics.analyses.learning.spikes import onset_of
from forensics.case.curves.loss import Curve
from forensics.stats.correlation import noise_about
from forensics.stats.running import centred_median
from forensics.stats.spread import Floats, spread
from forensics.store.run import Run, derived


class Disagree(Struct, frozen=True):
    """Thresholds of LRN015: numbers of common steps and ranks, shares of steps, and relative differences.

    Values that differ by no more than `same` are equal: the last digit of a float, and no more, may depend on the rank.
    A rank whose own loss leaves those of the others does so by `clear` deviations of their usual distance, ends apart
    by `leaves` in logarithms and by as many deviations of a level, and is apart in `parted` of the records after the
    onset. `ruined` times the loss of the others is an error.
    """

    steps: int = 10
    ranks: int = 4
    equal: float = 0.95
    parted: float = 0.9
    same: float = 1e-6
    tolerance: float = 1e-3
    apart: float = 0.05
    sigmas: float = 6.0
    leaves: float = 0.1
    clear: float = 4.0
    ruined: float = 1.5


class Together(Struct, frozen=True):
    """One metric of all ranks of one attempt on their common steps: one row a step, one column a rank."""

    steps: Floats
    values: Floats
    ranks: tuple[int, ...]
    curves: tuple[Curve, ...]


class Parted(Struct, frozen=True):
    """Where the rank in column `odd` left the others for good: at row `onset`, by the ratio `times` since then.

    `how` is `equal` (they had been equal to the last digit), `own` (each has its own data), `always` (apart from the
    first step on), or `never` (equal at hardly any step). `times` is the ratio of the levels, in the direction of the
    odd rank.
    """

    together: Together
    how: str
    odd: int
    onset: int
    times: float


@derived
def parted(run: Run) -> Parted | None:
    """Find the rank whose loss left the others'."""
    limits = run.threshold(Disagree)
    found = _together(run, limits, "loss")
    if found is None:
        return None
    return _were_equal(found, limits) if _are_shared(found, limits) else _left(found, limits) or _apart(found, limits)


def shared_parted(run: Run) -> Iterator[Parted]:
    """Find where what an averaged gradient makes equal on all ranks is not, or no longer: weights, norm, learning rate.

    A norm that never was equal is one of a shard; a learning rate is equal on all ranks but one that is set apart. A
    checksum of the weights is printed to see whether it is equal.
    """
    limits = run.threshold(Disagree)
    ways = {
        "weights_checksum": (_were_equal, _never_equal),
        "param_norm": (_were_equal,),
        "grad_norm": (_were_equal,),
        "lr": (_were_equal, _set_apart),
    }
    for name, tried in ways.items():
        if (found := _together(run, limits, name)) is not None:
            yield from islice((gone for way in tried if (gone := way(found, limits)) is not None), 1)


def _are_shared(found: Together, limits: Disagree) -> bool:
    """Whether enough steps are equal on all ranks that the metric describes the whole job."""
    equal = _differences(found) <= limits.same
    return bool(equal.sum() >= limits.steps // 2 or equal.mean() >= 0.5)


def _differences(found: Together) -> Floats:
    """The range over the ranks at each step, relative to the largest value."""
    high, low = found.values.max(axis=1), found.values.min(axis=1)
    return (high / 2 - low / 2) / np.maximum(np.abs(found.values).max(axis=1) / 2, 1e-12)


def _were_equal(found: Together, limits: Disagree) -> Parted | None:
    """Find the step from which a metric that was equal on all ranks differs for good."""
    apart = _differences(found)
    equal = apart <= limits.same
    onset = int(np.argmin(equal)) if not equal.all() else len(equal)
    after = apart[onset:]
    if onset < limits.steps // 2 or len(after) < 3 or float((after > limits.tolerance).mean()) < limits.parted:
        return None
    row = found.values[onset]
    odd = int(np.argmax(np.abs(row - np.median(row)))) if len(row) > 2 else _odd_of_two(found, onset)
    return Parted(found, "equal", odd, onset, 1 + float(np.median(after)))


def _set_apart(found: Together, limits: Disagree) -> Parted | None:
    """Find the one rank whose values differ from all others', which are equal to the last digit."""
    middle = np.median(found.values, axis=1)
    size = np.maximum(np.abs(middle), 1e-12)
    apart = np.abs(found.values / size[:, None] - (middle / size)[:, None])
    differs = (apart > limits.tolerance).mean(axis=0)
    odd = int(np.argmax(differs))
    others = np.delete(apart, odd, axis=1)
    if len(found.ranks) < limits.ranks or differs[odd] < limits.parted or float((others > limits.same).mean()) > 0:
        return None
    ratio = found.values[:, odd] / np.where(middle == 0, 1e-12, middle)
    return Parted(found, "always", odd, 0, float(np.median(ratio)))


def _never_equal(found: Together, limits: Disagree) -> Parted | None:
    """Find the rank that is furthest from the others, or from the first of two, where no step has one value."""
    apart = _differences(found)
    if float((apart > limits.same).mean()) < limits.parted:
        return None
    off = np.abs(found.values - np.median(found.values, axis=1, keepdims=True)).mean(axis=0)
    odd = int(np.argmax(off)) if len(found.ranks) > 2 else 1
    return Parted(found, "never", odd, 0, 1 + float(np.median(apart)))


def _together(run: Run, limits: Disagree, name: str) -> Together | None:
    """Align one metric of all ranks on their common steps: of the name that most ranks log."""
    by: dict[tuple[int, str], dict[int, Curve]] = {}
    for curve in judged(run, name):
        if curve.rank is not None:
            by.setdefault((curve.attempt, curve.raw_name), {}).setdefault(curve.rank, curve)
    ranks = next((group for _, group in sorted(by.items()) if len(group) > 1), None)
    if ranks is None:
        return None
    order = tuple(sorted(ranks))
    held = [_by_step(ranks[rank]) for rank in order]
    common = held[0][0]
    for steps, _ in held[1:]:
        common = common if np.array_equal(steps, common) else np.intersect1d(common, steps, assume_unique=True)
    if len(common) < limits.steps:
        return None
    values = np.column_stack([losses[np.searchsorted(steps, common)] for steps, losses in held])
    return Together(common.astype(np.float64), values, order, tuple(ranks[r] for r in order))


def _by_step(curve: Curve) -> tuple[NDArray[np.int64], Floats]:
    """The steps of a curve, in order, and the first value of each."""
    at, values = curve.at, curve.values
    if at.null_count():
        there = at.is_not_null().to_numpy()
        at, values = at.drop_nulls(), values[there]
    steps, first = np.unique(at.to_numpy(), return_index=True)
    return steps, values[first]


def _odd_of_two(found: Together, onset: int) -> int:
    """Of two ranks, the one whose loss moved further from its own level before."""
    if float(found.values.min()) <= 0:
        return 1
    y = np.log(found.values)
    move = np.median(y[onset:], axis=0) - np.median(y[max(0, onset - 10) : onset], axis=0)
    return int(np.argmax(move))


def _left(found: Together, limits: Disagree) -> Parted | None:
    """Find the rank whose distance from the others grew at a step and stayed, against the noise of all distances."""
    if float(found.values.min()) <= 0 or len(found.steps) < 2 * limits.steps:
        return None
    y = np.log(found.values)
    middle = np.median(y, axis=1, keepdims=True) if y.shape[1] > 2 else y[:, ::-1]
    distance, n = y - middle, len(y)
    tail = max(limits.steps // 2, n // 5)
    last = np.median(distance[-tail:], axis=0)
    odd = int(np.argmax(last)) if y.shape[1] == 2 else int(np.argmax(np.abs(last)))
    own = distance[:, odd] * (1 if last[odd] > 0 else -1)
    sd = max(noise_about(d, centred_median(d, min(51, (n // 6) * 2 + 1))).sd for d in distance.T)
    levels = centred_median(own, 5)
    low = int(np.argmin(centred_median(own, min(51, (n // 3) | 1))))
    usual = float(np.median(own[max(0, low - tail) : low + tail]))
    size, widest = abs(float(last[odd])) - usual, float(levels[low:].max()) - usual
    high = np.flatnonzero(levels[low:] > levels[low] + widest / 2)
    if size < max(limits.leaves, limits.clear * sd / tail**0.5) or widest < limits.clear * sd or not len(high):
        return None
    onset = onset_of(own, low, low + int(high[0]) + 1, float(np.median(own[: low + 1])), sd)
    before = float(np.median(own[:onset])) if onset else 0.0
    apart = before + min(size / 4, limits.clear * sd)  # a drift is apart from its noise long before it is far
    if onset < limits.steps // 2 or float((own[onset:] > apart).mean()) < limits.parted:
        return None
    return Parted(found, "own", odd, onset, float(np.exp(min(700.0, abs(last[odd])))))


def _apart(found: Together, limits: Disagree) -> Parted | None:
    """Find a rank that keeps away from the others, whose spread is known, from the first third of the steps on."""
    if len(found.ranks) < limits.ranks or float(found.values.min()) <= 0:
        return None
    each = np.log(found.values) - np.median(np.log(found.values), axis=1, keepdims=True)
    distance, early = np.median(each, axis=0), np.median(each[: max(1, len(each) // 3)], axis=0)
    worst = int(np.argmax(np.abs(distance)))
    others = np.delete(distance, worst)
    apart = max(limits.apart, limits.sigmas * max(spread(others), 0.005))
    if abs(distance[worst]) > apart and abs(early[worst]) > apart:
        return Parted(found, "always", worst, 0, float(np.exp(distance[worst])))
    return None
