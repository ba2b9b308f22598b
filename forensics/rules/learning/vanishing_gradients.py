"""LRN012 vanishing-gradients: the gradient norm decayed towards zero while the loss stood still far from zero.

What it detects: a gradient norm that sinks to less than a hundredth of what it was, and a loss that stopped falling.

Why it matters: the signal no longer reaches the parameters; more steps change nothing.

How it decides: the medians of ten equal parts of the gradient norm, after the first twentieth, never rise by much and
end below `left` of the first; the loss has not fallen over its last half, and is still above `high` of its first
level. A learning rate that ends below a twentieth of its peak explains small steps but not small gradients, so the
norm must be down before that.

What else looks like this: a task that is learned to the end: then the loss is near zero.

What to do next: print the gradient norm of each layer; look for saturated activations, missing residual paths or
normalisation, and an initialisation that is too small.

References: Glorot and Bengio 2010; He et al. 2015; Hochreiter 1998 on vanishing gradients.

Example:
    ```metrics
    step: 10..260/10
    loss: 5.496 4.935 4.537 4.227 4.025 3.868 3.753 3.725 3.634 3.598 3.535 3.53 3.533 3.532*2 3.504 3.496 3.513 3.511
        3.492 3.507 3.491 3.493 3.5 3.49 3.476
    grad_norm: 1.966 1.575 1.281 0.8947 0.7271 0.5368 0.3966 0.4291 0.2616 0.2092 0.1272 0.1103 0.09695 0.08087 0.06651
        0.04384 0.03312 0.02977 0.02313 0.01595 0.01394 0.009736 0.007723 0.006315 0.004605 0.003229
    ```
    => LRN012 warning confidence=medium step=110 cause=vanishing_gradients first=1.281 last=0.003917
Not this: a loss that goes to nothing together with its gradients
    ```metrics
    step: 10..260/10
    loss: 4.997 3.896 3.039 2.357 1.839 1.429 1.11 0.8762 0.6758 0.5268 0.4063 0.3178 0.2487 0.1942 0.1516 0.1173
        0.09121 0.07144 0.05563 0.04312 0.03374 0.02616 0.02039 0.01591 0.01236 0.009583
    grad_norm: 1.966 1.575 1.281 0.8947 0.7271 0.5368 0.3966 0.4291 0.2616 0.2092 0.1272 0.1103 0.09695 0.08087 0.06651
        0.04384 0.03312 0.02977 0.02313 0.01595 0.01394 0.009736 0.007723 0.006315 0.004605 0.003229
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from forensics.analyses.learning.losses import Loss, loss_beside
from forensics.analyses.learning.lr_schedule import schedule_beside
from forensics.analyses.learning.objective import improved, reinforced
from forensics.case.curves.loss import Curve, curves
from forensics.rules.kit import Finding, Findings, Run, at_step, number, onset_at, proof, rule
from forensics.stats.spread import Floats, median_of

_PARTS = 10


@dataclass(frozen=True, slots=True)
class Vanishing:
    """Thresholds of LRN012: shares of the first level of the norm and of the loss, and how far a part may rise."""

    records: int = 24
    left: float = 0.01
    high: float = 0.3
    rises: float = 1.3
    sigmas: float = 2.33
    least_fall: float = 0.01


@rule(
    "learning",
    needs=("metrics",),
    config=Vanishing,
    severity="warning",
    confidence="medium",
    cause="vanishing_gradients",
)
def vanishing_gradients(run: Run, cfg: Vanishing) -> Findings:
    """Find the first gradient norm that vanishes above a loss that stays."""
    if reinforced(run):
        return
    for norm in curves(run, "grad_norm"):
        levels = _levels(norm, cfg)
        one = loss_beside(run, norm)
        if levels is None or one is None or not _stays(one, cfg) or not _before_the_decay(run, norm, levels, cfg):
            continue
        if not improved(run, one.curve, len(one.curve) // 2):
            yield _finding(norm, one.curve, levels, cfg)
            return


def _levels(norm: Curve, cfg: Vanishing) -> Floats | None:
    """Give the medians of ten equal parts when they sink far enough without rising."""
    values = norm.values[len(norm) // 20 :]
    if len(values) < cfg.records or float((values > 0).mean()) < 0.5:
        return None
    levels = np.array([median_of(part) for part in np.array_split(values, _PARTS)])
    sinks = levels[-1] < cfg.left * levels[0] and bool((levels[1:] / cfg.rises <= levels[:-1]).all())
    return levels if sinks else None


def _stays(loss: Loss, cfg: Vanishing) -> bool:
    trend = loss.trend
    if trend is None:
        return False
    bound = max(cfg.sigmas * trend.late_error, -log(1 - cfg.least_fall))
    return abs(trend.late_fall) < bound and trend.last > cfg.high * trend.first


def _before_the_decay(run: Run, norm: Curve, levels: Floats, cfg: Vanishing) -> bool:
    """Whether the norm is down to a tenth while the learning rate is still above a twentieth of its peak."""
    schedule = schedule_beside(run, norm)
    if schedule is None or schedule.peak <= 0:
        return True
    up = np.flatnonzero(schedule.curve.values > schedule.peak / 20)
    part = int(up[-1] * _PARTS / len(schedule.curve)) if len(up) else 0
    return bool(levels[: max(1, part)].min() < 10 * cfg.left * levels[0])


def _finding(norm: Curve, loss: Curve, levels: Floats, cfg: Vanishing) -> Finding:
    low = np.flatnonzero(norm.values >= 10 * cfg.left * levels[0])
    at = min(int(low[-1]) + 1 if len(low) else 0, len(norm) - 1)
    row = norm.row(at)
    return vanishing_gradients.finding(
        f"{norm.raw_name} vanishes: {number(levels[0])} → {number(levels[-1])}"
        f", below a tenth from {at_step(row['at'])}",
        f"the loss stays at {number(median_of(loss.values[-max(5, len(loss) // 5) :]))} meanwhile",
        proof(row, norm.row(-1), loss.row(-1)),
        onset_at(row),
        numbers={"first": float(levels[0]), "last": float(levels[-1])},
    )
