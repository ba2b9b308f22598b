"""EVL022 score-falls: a score that the run measured while it trained fell from its best although the loss improved.

What it detects: an accuracy or another score among the logged metrics that was better at an earlier step.

Why it matters: the last checkpoint is not the best one, and the training loss does not say so: a sign of overfitting,
of forgetting, or of a change in the data.

How it decides: six evaluations or more; the last three all lie below the best by more than the noise of the second
differences explains (extreme-value corrected, as the best of many is high by chance) and by a twentieth of the best;
the training loss was lower at the end than at the best step. The score must have risen before, and be a share or a
percentage: some write an error under the name of a score.

What else looks like this: an evaluation on few documents; a set that changes between evaluations.

What to do next: take the checkpoint of the best step; evaluate it and the last one on more documents.

References: Prechelt 1998, "Early Stopping: But When?".

Example:
    ```metrics
    step: 100..600/100
    loss: 2.0..1.0/-0.2
    eval/accuracy: 0.50 0.60 0.68..0.44/-0.08
    ```
    => EVL022 warning confidence=medium step=300 cause=overfitting best=0.6800 last=0.4400
Not this: it rises to the end
    ```metrics
    step: 100..600/100
    loss: 2.0..1.0/-0.2
    eval/accuracy: 0.50 0.60 0.68 0.67 0.70 0.69
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from forensics.analyses.evals.curves import EvalCurve, eval_curves
from forensics.case.curves.loss import Curve, curves
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule
from forensics.stats.spread import bending


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of EVL022: evaluations, relative fall, last ones that must lie below, records, least percentage."""

    evaluations: int = 6
    fall: float = 0.05
    last: int = 3
    records: int = 10
    percent: float = 10.0


@rule("bad_eval", needs=("metrics",), config=Config, severity="warning", confidence="medium", cause="overfitting")
def score_falls(run: Run, cfg: Config) -> Findings:
    """Report the score that fell furthest from its best."""
    falls = [(c, best) for c in eval_curves(run) if c.higher and (best := _best(c, cfg)) is not None]
    losses = [c for c in curves(run, "loss") if c.at.null_count() == 0] if falls else []
    falls = [(c, best) for c, best in falls if any(_improved(loss, c, best, cfg) for loss in losses)]
    if falls:
        curve, best = min(falls, key=lambda pair: float(pair[0].values[-1] / pair[0].values[pair[1]]))
        yield _finding(curve, best, len(falls))


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
