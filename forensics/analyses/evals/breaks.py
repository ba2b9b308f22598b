"""Scores of evaluations that break off: they fall between two of them and stay there, and training kept its level."""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt

import numpy as np
from msgspec import Struct

from forensics.analyses.evals.curves import EvalCurve, eval_curves
from forensics.case.curves.loss import Curve, curves
from forensics.knowledge.vocabulary import stands_for
from forensics.stats.spread import Floats, bending
from forensics.store.run import Run


class ScoreFalls(Struct, frozen=True):
    """Thresholds of EVL022: evaluations, relative fall, last ones that must lie below, records, least percentage.

    `broken`: what is left of a score that breaks off; `stays`: evaluations at that level; `back`: the share of its way
    that the training loss may lose meanwhile, which is noise of a few records. `gone`: what is left of the `last` ones
    where a single evaluation at the end tells.
    """

    evaluations: int = 6
    fall: float = 0.05
    last: int = 3
    records: int = 10
    percent: float = 10.0
    broken: float = 0.5
    stays: int = 2
    back: float = 0.1
    gone: float = 0.05


class Break(Struct, frozen=True):
    """A score and its first evaluation behind the break; whether a loss `rose` there, and another score `gained`."""

    curve: EvalCurve
    at: int
    rose: bool
    gained: bool


def breaks(run: Run) -> Iterator[Break]:
    """Scores that fell between two evaluations, and stayed there, while the training loss kept its level."""
    cfg, every = run.threshold(ScoreFalls), eval_curves(run)
    costs = [c for c in every if c.higher is False]
    for curve in (c for c in every if c.higher):
        at = _broken_at(curve, cfg)
        if at is None or not costs:
            continue
        rose = any(_rose_at(cost, curve, at) for cost in costs)
        risen = curve.values[at - 1] > curve.values[0]  # as no error does
        if not rose and (not risen or any(_got_worse(cost, curve, at) for cost in costs)):
            continue
        if not any(_kept(loss, curve, at, cfg) for loss in curves(run, "loss") if loss.at.null_count() == 0):
            continue
        before = curve.row(at - 1)["at"]
        gained = rose and any(_leapt(c, before, cfg) for c in every if c.higher and c is not curve)
        yield Break(curve, at, rose, gained)


def _broken_at(curve: EvalCurve, cfg: ScoreFalls) -> int | None:
    """The place from which on all values are at most `broken` of each of the last before; None where there is none."""
    values = curve.values
    places = range(cfg.last, len(values) - cfg.stays + 1)
    return next((i for i in places if values[i:].max() <= cfg.broken * values[i - cfg.last : i].min()), None)


def _rose_at(cost: EvalCurve, curve: EvalCurve, at: int) -> bool:
    """Whether an evaluation loss is higher from that evaluation on than it ever was before."""
    after = cost.steps >= curve.row(at)["at"]
    return bool(after.any() and (~after).any() and cost.values[after].min() > cost.values[~after].max())


def _got_worse(cost: EvalCurve, curve: EvalCurve, at: int) -> bool:
    """Whether an evaluation loss is higher behind a place than the last before it, or lies on one side alone."""
    after = cost.steps >= curve.row(at)["at"]
    return not after.any() or bool(after.all()) or float(np.median(cost.values[after])) > float(cost.values[~after][-1])


def _kept(loss: Curve, curve: EvalCurve, at: int, cfg: ScoreFalls) -> bool:
    """Whether the training loss is after a break where it was before it, measured by the way that it had come."""
    if (levels := levels_about(loss, curve, at - 1, cfg)) is None:
        return False
    then, now = levels
    return now <= then + cfg.back * max(0.0, float(loss.values[0]) - then)


def levels_about(loss: Curve, curve: EvalCurve, at: int, cfg: ScoreFalls) -> tuple[float, float] | None:
    """The training loss up to an evaluation, and its last level behind it."""
    until = int((loss.at <= curve.row(at)["at"]).sum())
    then, now = loss.values[max(0, until - cfg.records) : until], loss.values[until:][-cfg.records :]
    return (float(np.median(then)), float(np.median(now))) if len(then) and len(now) else None


def high_by_chance(values: Floats) -> float:
    """How far the best of many values is above their level by chance."""
    return (1.5 + sqrt(2 * log(len(values)))) * bending(values)


def _leapt(curve: EvalCurve, step: int, cfg: ScoreFalls) -> bool:
    """Whether half or more of what a score gained behind a step came with its first evaluation there."""
    before, behind = curve.values[curve.steps <= step], curve.values[curve.steps > step]
    if not len(before) or not len(behind):
        return not len(before) and stands_for("score_of_a_task", curve.name)
    end, last = float(behind[-cfg.last :].min()), float(before[-1])
    gained = end > float(before.max()) + max(cfg.fall * end, high_by_chance(before) if len(before) >= cfg.last else 0.0)
    return gained and 2 * (float(behind[0]) - last) >= end - last
