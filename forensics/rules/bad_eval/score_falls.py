"""EVL022 score-falls: a score that the run measured while it trained fell from its best although the loss improved.

What it detects: an accuracy or another score among the logged metrics that was better at an earlier step.

Why it matters: the last checkpoint is not the best one, and the training loss does not say so: a sign of overfitting,
of forgetting, or of a change in the data.

How it decides: six evaluations or more; the last three all lie below the best by more than the noise of the second
differences explains (extreme-value corrected, as the best of many is high by chance) and by a twentieth of the best;
the training loss was lower at the end than at the best step. The score must have risen before, and be a share or a
percentage: some write an error under the name of a score.

A score that breaks off needs less: between two neighbouring evaluations it falls to `broken` of the lowest of those
before or less and, twice or more, stays there to the end, while the training loss keeps what it had learned: it is no
further back than `back` of its way from its first level. Overfitting is never so abrupt: what is evaluated changed, or
how. An evaluation loss that rose at the same place proves that the name is no error's.

What else looks like this: an evaluation on few documents; a set that changes between evaluations.

What to do next: take the checkpoint of the best step; evaluate it and the last one on more documents. Of one that broke
off, evaluate the checkpoint before with today's data and code: if it falls too, the evaluation changed.

References: Prechelt 1998, "Early Stopping: But When?".

Example:
    ```metrics
    step: 100..600/100
    loss: 2.0..1.0/-0.2
    eval/accuracy: 0.50 0.60 0.68..0.44/-0.08
    ```
    => EVL022 warning confidence=medium step=300 cause=overfitting best=0.6800 last=0.4400
Example: it breaks off while training is as good as before
    ```metrics
    step: 100..600/100
    loss: 2.0 0.5 0.2 0.1*3
    eval_loss: 0.6 0.3 0.2 6.1 6.2 6.1
    eval/accuracy: 0.90 0.95 0.96 0.11 0.10 0.12
    ```
    => EVL022 warning confidence=medium step=400 step_lo=300 cause=cause_not_recorded best=0.9600 last=0.1200
Not this: the training broke off, too
    ```metrics
    step: 100..600/100
    loss: 2.0 0.5 0.2 2.1*3
    eval_loss: 0.6 0.3 0.2 6.1 6.2 6.1
    eval/accuracy: 0.90 0.95 0.96 0.11 0.10 0.12
    ```
    => nothing
Not this: it rises to the end
    ```metrics
    step: 100..600/100
    loss: 2.0..1.0/-0.2
    eval/accuracy: 0.50 0.60 0.68 0.67 0.70 0.69
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from forensics.analyses.evals.curves import EvalCurve, eval_curves
from forensics.case.curves.loss import Curve, curves
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule
from forensics.stats.spread import bending


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of EVL022: evaluations, relative fall, last ones that must lie below, records, least percentage.

    `broken`: what is left of a score that breaks off; `stays`: evaluations at that level; `back`: the share of its way
    that the training loss may lose meanwhile, which is noise of a few records.
    """

    evaluations: int = 6
    fall: float = 0.05
    last: int = 3
    records: int = 10
    percent: float = 10.0
    broken: float = 0.5
    stays: int = 2
    back: float = 0.1


@rule("bad_eval", needs=("metrics",), config=Config, severity="warning", confidence="medium", cause="overfitting")
def score_falls(run: Run, cfg: Config) -> Findings:
    """Report the score that broke off, else the one that fell furthest from its best."""
    broken = next(_breaks(run, cfg), None)
    if broken is not None:
        yield broken
        return
    falls = [(c, best) for c in eval_curves(run) if c.higher and (best := _best(c, cfg)) is not None]
    losses = [c for c in curves(run, "loss") if c.at.null_count() == 0] if falls else []
    falls = [(c, best) for c, best in falls if any(_improved(loss, c, best, cfg) for loss in losses)]
    if falls:
        curve, best = min(falls, key=lambda pair: float(pair[0].values[-1] / pair[0].values[pair[1]]))
        yield _finding(curve, best, len(falls))


def _breaks(run: Run, cfg: Config) -> Iterator[Finding]:
    """Scores that fell between two evaluations, and stayed there, while the training loss kept its level."""
    every = eval_curves(run)
    costs = [c for c in every if c.higher is False]
    for curve in (c for c in every if c.higher):
        at = _broken_at(curve, cfg)
        if at is None or not any(_rose_at(cost, curve, at) for cost in costs):
            continue
        if any(_kept(loss, curve, at, cfg) for loss in curves(run, "loss") if loss.at.null_count() == 0):
            yield _broken(curve, at)


def _broken_at(curve: EvalCurve, cfg: Config) -> int | None:
    """The place from which on all values are at most `broken` of the lowest before; None where there is none."""
    values = curve.values
    places = range(cfg.stays, len(values) - cfg.stays + 1)
    return next((i for i in places if values[i:].max() <= cfg.broken * values[:i].min()), None)


def _rose_at(cost: EvalCurve, curve: EvalCurve, at: int) -> bool:
    """Whether an evaluation loss is higher from that evaluation on than it ever was before."""
    after = cost.steps >= curve.row(at)["at"]
    return bool(after.any() and (~after).any() and cost.values[after].min() > cost.values[~after].max())


def _kept(loss: Curve, curve: EvalCurve, at: int, cfg: Config) -> bool:
    """Whether the training loss is after a break where it was before it, measured by the way that it had come."""
    until = int((loss.at <= curve.row(at - 1)["at"]).sum())
    then, now = loss.values[max(0, until - cfg.records) : until], loss.values[until:][-cfg.records :]
    if not len(then) or not len(now):
        return False
    level = float(np.median(then))
    return float(np.median(now)) <= level + cfg.back * max(0.0, float(loss.values[0]) - level)


def _broken(curve: EvalCurve, at: int) -> Finding:
    before, after = curve.row(at - 1), curve.row(at)
    return score_falls.finding(
        f"{curve.name} fell from {before['value']:.4g} to {after['value']:.4g} between two evaluations and stays there"
        " although the training loss did not rise",
        "an evaluation loss rose at the same place, and nothing that is learned breaks off like this in training alone",
        proof(after, before, curve.row(-1)),
        Onset(step=after["at"], step_lo=before["at"]),
        cause="cause_not_recorded",
        numbers={"best": before["value"], "last": curve.row(-1)["value"], "best_step": before["at"]},
        next=(
            f"evaluate the checkpoint of step {before['at']} with today's data and code",
            "compare order and labels of the evaluation set, its preprocessing, and the mode of the model (eval())",
        ),
    )


def _best(curve: EvalCurve, cfg: Config) -> int | None:
    """The place of the best value, where the end lies surely below it."""
    values = curve.values
    if len(values) < cfg.evaluations:
        return None
    best = int(np.argmax(values))
    top, sd = float(values[best]), bending(values)
    bound = max(cfg.fall * top, (1.5 + sqrt(2 * log(len(values)))) * sd)
    # a score is a share or a percentage, and first rises; else it is an error under the name of a score
    is_score = 0 < top <= 1 or top > cfg.percent
    below = bool((values[-cfg.last :] < top - bound).all())
    rose = top > float(values[0]) + bound
    return best if is_score and rose and below and best < len(values) - cfg.last else None


def _improved(loss: Curve, curve: EvalCurve, best: int, cfg: Config) -> bool:
    until = int((loss.at <= curve.row(best)["at"]).sum())
    then, now = loss.values[max(0, until - cfg.records) : until], loss.values[until:][-cfg.records :]
    return len(then) > 0 and len(now) > 0 and float(np.median(now)) < float(np.median(then))


def _finding(curve: EvalCurve, best: int, count: int) -> Finding:
    top, last = curve.row(best), curve.row(-1)
    more = f"; {count} scores fell like that" if count > 1 else ""
    return score_falls.finding(
        f"{curve.name} fell from {top['value']:.4g} at step {top['at']} to {last['value']:.4g} at step {last['at']}"
        f" while the loss improved{more}",
        "the last evaluations are all below the best one by more than noise explains",
        proof(last, top),
        Onset(step=top["at"]),
        numbers={"best": top["value"], "last": last["value"], "best_step": top["at"]},
        next=(f"take the checkpoint of step {top['at']}", "evaluate it and the last one on more documents"),
    )
