"""LRN002 overfit: the evaluation loss rose evaluation after evaluation while the training loss went to nothing.

What it detects: a model that learns its training set by heart.

Why it matters: the last checkpoint is worse than an earlier one, and nothing in the training loss says so.

How it decides: at least five evaluations, or three of which the last is half above the lowest, while the training loss
fell to a third: an error. Of five or more an error: from its lowest value on the evaluation loss only rises, at least
three times and by at least a quarter, or it ends at twice the lowest value and no score got better, and meanwhile the
training loss fell to a third of what it was or less. Less than that: the last three evaluations lie above the lowest
by more than the noise of their second differences explains (extreme-value corrected, as the lowest of many is low by
chance), and the training loss fell significantly: a warning from a tenth on, below it a note.

What else looks like this: an evaluation set that changes during the run; another metric (word error rate, accuracy)
that still improves while the loss rises: then the choice of the metric decides which checkpoint is best.

What to do next: take the checkpoint at the lowest evaluation loss; stop earlier, regularise, or add data.

References: Prechelt 1998, "Early Stopping: But When?".

Example:
    ```metrics
    step: 10..50/10
    loss: 1.5 0.5 0.25 0.125 0.0625
    eval_loss: 1.0..2.0/0.25
    ```
    => LRN002 error confidence=medium step=20 step_lo=10 cause=overfit best=1.000 last=2.000
Example: three epochs, evaluated after each
    ```metrics step,name,value
    10,loss,1.2
    20,loss,1.0
    20,eval_loss,1.05
    30,loss,0.6
    40,loss,0.4
    40,eval_loss,1.25
    50,loss,0.2
    60,loss,0.1
    60,eval_loss,1.9
    ```
    => LRN002 error confidence=medium step=40 step_lo=20 cause=overfit best=1.050 last=1.900
Not this: the last of three is a third above the lowest
    ```metrics step,name,value
    10,loss,1.2
    20,loss,1.0
    20,eval_loss,1.05
    30,loss,0.6
    40,loss,0.4
    40,eval_loss,1.25
    50,loss,0.2
    60,loss,0.1
    60,eval_loss,1.4
    ```
    => nothing
Not this:
    ```metrics
    step: 10..50/10
    loss: 1.5 1.25 1.25 1.0 1.0
    eval_loss: 1.5 1.25*3 1.5
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, log, sqrt

import numpy as np

from forensics.analyses.evals.curves import eval_curves
from forensics.case.curves.loss import Curve, curves
from forensics.rules.kit import Finding, Findings, Run, Severity, onset_at, proof, rule
from forensics.stats.correlation import noise_about
from forensics.stats.running import centred_median
from forensics.stats.spread import Floats, bending

#: Fewer values have one second difference at most.
_BENDS = 3


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of LRN002: `rises`, `rise` and `training_left` for the error, the others for the milder forms.

    `least` is the smallest relative rise of the evaluation loss, `warn` the one that is a warning, `sigmas` the
    significance of the fall of the training loss from its `near` records before the lowest evaluation; `doubled`
    is the rise that is an error where the training loss fell to `training_left` and no score of an evaluation got
    better meanwhile; `factor` times the expected depth of the lowest evaluation (Cramer 1946: about sqrt(2 ln n)
    deviations below the mean) must be exceeded. `few` evaluations are enough where the last is `far` above the lowest:
    two of one model differ by 1 to 5 % (Dodge et al. 2020), and a fine-tuning evaluates once in an epoch.
    """

    evaluations: int = 5
    few: int = 3
    far: float = 0.5
    rises: int = 3
    rise: float = 0.25
    training_left: float = 1 / 3
    least: float = 0.01
    warn: float = 0.1
    doubled: float = 1.0
    sigmas: float = 3.0
    factor: float = 1.2
    near: int = 3


@rule("learning", needs=("metrics",), config=Config, confidence="medium", cause="overfit")
def overfit(run: Run, cfg: Config) -> Findings:
    """Find the first evaluation loss that rises to the end while the training loss falls, the worst kind first."""
    training = [c for c in curves(run, "loss") if len(c) >= cfg.evaluations]
    found = [(c, hit) for c in curves(run, "eval_loss") if (hit := _judge(c, training, cfg)) is not None]
    if found:
        curve, (best, severity) = max(found, key=lambda pair: pair[1][1].rank)
        if severity is Severity.ERROR and _scores_rose(run, curve.step(best)):
            severity = Severity.WARNING
        yield _finding(curve, best, severity)


def _scores_rose(run: Run, step: int | None) -> bool:
    """Whether a score of which more is better, as an accuracy, reached more after the lowest evaluation loss."""
    for score in eval_curves(run):
        if score.higher and step is not None:
            before, after = score.values[score.steps <= step], score.values[score.steps > step]
            if len(before) and len(after) and after.max() > before.max():
                return True
    return False


def _judge(evals: Curve, training: list[Curve], cfg: Config) -> tuple[int, Severity] | None:
    values = evals.values
    if len(values) < cfg.few:
        return None
    best = int(np.argmin(values))
    tail = values[best:]
    if tail[0] <= 0:
        return None
    before = [(t, until) for t in training if (until := _until(t, evals, best))]
    few = len(values) < cfg.evaluations
    only_rises = len(tail) > cfg.rises and bool((np.diff(tail) > 0).all()) and tail[-1] >= tail[0] * (1 + cfg.rise)
    far = tail[-1] >= tail[0] * (1 + cfg.far)
    if (far if few else only_rises) and any(_vanished(t, until, cfg) for t, until in before):
        return best, Severity.ERROR
    rise = None if few else _rise(values, best, cfg)
    if rise is None or not any(_falls(t, until, cfg) for t, until in before):
        return None
    if rise >= cfg.doubled and any(_vanished(t, until, cfg) for t, until in before):
        return best, Severity.ERROR
    return best, Severity.WARNING if rise >= cfg.warn else Severity.INFO


def _rise(values: Floats, best: int, cfg: Config) -> float | None:
    """Give the relative rise after the lowest value; None when noise may explain it."""
    n = len(values)
    late = values[n // 4 :]
    sd = bending(late) if len(late) > _BENDS else float(np.ptp(values))
    low = float(values[best])
    depth = 1.5 + sqrt(2 * log(max(2, n - n // 4)))
    bound = max(cfg.least * low, cfg.factor * depth * max(sd, 1e-4 * low))
    after = values[best + 1 :]
    if len(after) < cfg.rises:
        return None
    rise = float(np.median(after[-cfg.rises :])) - low
    return rise / low if rise > bound and bool((after[-cfg.rises :] > low + bound / 2).all()) else None


def _vanished(training: Curve, until: int, cfg: Config) -> bool:
    return 0 <= float(training.values[-1]) <= cfg.training_left * float(training.values[until - 1])


def _falls(training: Curve, until: int, cfg: Config) -> bool:
    """Whether the training loss fell significantly from the best evaluation, after `until` records, to the end."""
    after = training.values[max(0, until - 1) :]
    third = len(after) // 3
    if third < 3:
        return False
    near = min(third, until, cfg.near)
    noise = noise_about(after, centred_median(after, min(51, (len(after) // 6) * 2 + 1)))
    then = max(float(np.median(after[:third])), float(np.median(training.values[until - near : until])))
    return then - float(np.median(after[-third:])) > cfg.sigmas * hypot(noise.of_level(near), noise.of_level(third))


def _until(training: Curve, evals: Curve, index: int) -> int:
    """Count the training records up to an evaluation: by the step, where none is printed by the epoch."""
    step = evals.step(index)
    if step is not None:
        return int((training.at <= step).sum())
    return int((training.epochs <= evals.epochs[index]).sum())


def _finding(curve: Curve, best: int, severity: Severity) -> Finding:
    low, last = float(curve.values[best]), float(curve.values[-1])
    step, rising = curve.step(best), curve.row(best + 1)
    where = f"epoch {curve.epochs[best]:.3g}" if step is None else f"step {step}"
    meanwhile = "vanished" if severity is Severity.ERROR else "fell"
    return overfit.finding(
        f"{curve.raw_name} rose from {low:.4g} at {where} to {last:.4g} while the training loss {meanwhile}",
        "every evaluation after the lowest is worse than the one before it"
        if bool((np.diff(curve.values[best:]) > 0).all())
        else "the last evaluations are above the lowest by more than their noise explains",
        proof(rising, curve.row(best), curve.row(-1)),
        onset_at(rising, step),
        severity=severity,
        numbers={"best": low, "last": last},
        next=(f"use the checkpoint of {where}", "stop earlier, regularise, or add data"),
    )
