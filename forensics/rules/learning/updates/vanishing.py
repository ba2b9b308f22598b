"""A gradient norm that vanishes above a loss that stays."""

from __future__ import annotations

from math import log

import numpy as np

from forensics.analyses.learning.losses import Loss, loss_beside
from forensics.analyses.learning.lr_schedule import schedule_beside
from forensics.analyses.learning.objective import improved, reinforced
from forensics.case.curves.loss import Curve, curves
from forensics.rules.kit import Findings, Run, Struct, at_step, number, proof, rule
from forensics.stats.spread import Floats, behind_last, median_of

_PARTS = 10


class Vanishing(Struct, frozen=True):
    """Thresholds of LRN012: shares of the first level of the norm and of the loss, and how far a part may rise."""

    records: int = 24
    left: float = 0.01
    high: float = 0.3
    rises: float = 1.3
    sigmas: float = 2.33
    least_fall: float = 0.01


#: What the rule about a loss that does not fall leaves to LRN012.
VANISHING = Vanishing()


@rule("LRN012 vanishing-gradients", "metrics", severity="warning", confidence="medium", cause="vanishing_gradients")
def vanishing_gradients(run: Run, cfg: Vanishing) -> Findings:
    """Find the first gradient norm that vanishes above a loss that stays."""
    found = vanished(run, cfg)
    if found is None:
        return
    norm, loss, levels = found
    row = norm.row(min(behind_last(norm.values >= 10 * cfg.left * levels[0]), len(norm) - 1))
    yield vanishing_gradients.finding(
        f"{norm.raw_name} vanishes: {number(levels[0])} → {number(levels[-1])}"
        f", below a tenth from {at_step(row['at'])}",
        f"the loss stays at {number(median_of(loss.values[-max(5, len(loss) // 5) :]))} meanwhile",
        proof(row, norm.row(-1), loss.row(-1)),
        numbers={"first": float(levels[0]), "last": float(levels[-1])},
    )


def vanished(run: Run, cfg: Vanishing) -> tuple[Curve, Curve, Floats] | None:
    """Give the first norm that vanishes, the loss that stays meanwhile, and the levels of the norm in ten parts."""
    if reinforced(run):
        return None
    for norm in curves(run, "grad_norm"):
        levels = _levels(norm, cfg)
        one = loss_beside(run, norm)
        if levels is None or one is None or not _stays(one, cfg) or not _before_the_decay(run, norm, levels, cfg):
            continue
        if not improved(run, one.curve, len(one.curve) // 2):
            return norm, one.curve, levels
    return None


def _levels(norm: Curve, cfg: Vanishing) -> Floats | None:
    """Give the medians of ten equal parts when they sink far enough without rising."""
    values = norm.values[len(norm) // 20 :]
    if len(values) < cfg.records or float((values > 0).mean()) < 0.5:
        return None
    levels = np.array([median_of(part) for part in np.array_split(values, _PARTS)])
    sinks = levels[-1] < cfg.left * levels[0] and bool((levels[1:] / cfg.rises <= levels[:-1]).all())
    return levels if sinks else None


def _stays(loss: Loss, cfg: Vanishing) -> bool:
    levels = loss.levels
    if levels is None:
        return False
    bound = max(cfg.sigmas * levels.late_error, -log(1 - cfg.least_fall))
    return abs(levels.late_fall) < bound and levels.last > cfg.high * levels.first


def _before_the_decay(run: Run, norm: Curve, levels: Floats, cfg: Vanishing) -> bool:
    """Whether the norm is down to a tenth while the learning rate is still above a twentieth of its peak."""
    schedule = schedule_beside(run, norm)
    if schedule is None or schedule.peak <= 0:
        return True
    up = np.flatnonzero(schedule.curve.values > schedule.peak / 20)
    part = int(up[-1] * _PARTS / len(schedule.curve)) if len(up) else 0
    return bool(levels[: max(1, part)].min() < 10 * cfg.left * levels[0])
