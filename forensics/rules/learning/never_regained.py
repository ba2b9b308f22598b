"""LRN019 never-regained: after its best evaluation the model got much worse in loss and in score, and stayed so.

What it detects: a fine-tuning that spoils what the model could do: its first evaluations are its best.

Why it matters: the training loss may look usual, and the last checkpoint is worse than an early one by far.

How it decides: at least `evaluations` evaluations, and at least `after` of them after the lowest evaluation loss. Each
of those has a loss at least `worse` above the lowest; and a score of the same evaluations (an error rate, or an
accuracy of any kind) is worse at each of them too, by `score` of its value at the lowest loss. Both are needed: a loss
alone rises when a model becomes sure of itself while its answers still improve.

What else looks like this: an evaluation set that changed during the run.

What to do next: take the checkpoint of the best evaluation; lower the learning rate and lengthen its warm-up; look at
the labels of the new data.

References: McCloskey and Cohen 1989 (catastrophic interference); Guo et al. 2017, "On Calibration of Modern Neural
Networks" (loss and accuracy part ways).

Example:
    ```metrics
    step: 10..50/10
    eval_loss: 0.30 0.52 0.55 0.51 0.53
    eval_wer: 21.0 33.0 36.0 34.0 31.0
    ```
    => LRN019 error confidence=medium step=20 step_lo=10 cause=never_regained best=0.3000 score=31.00
Not this: the loss rises while the score improves
    ```metrics
    step: 10..50/10
    eval_loss: 0.30 0.52 0.55 0.51 0.53
    eval_wer: 21.0 20.0..18.5/-0.5
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.analyses.learning.beside_eval import Series, series_of
from forensics.case.curves.loss import Curve, curves
from forensics.case.series import metric_names
from forensics.knowledge.scores import direction, is_of_loss
from forensics.knowledge.vocabulary import stands_for
from forensics.rules.kit import Evidence, Finding, Findings, Locator, Run, number, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class Regained:
    """Thresholds of LRN019: `worse` (loss) and `score` are relative to the best evaluation.

    A third more loss, and a fifth more errors or a fifth less score, at every later evaluation: far outside what two
    evaluations of one model differ by (Dodge et al. 2020 find 1 to 5 % between seeds).
    """

    evaluations: int = 5
    after: int = 3
    worse: float = 1 / 3
    score: float = 0.2


@rule("learning", needs=("metrics",), config=Regained, severity="error", confidence="medium", cause="never_regained")
def never_regained(run: Run, cfg: Regained) -> Findings:
    """Find the first evaluation loss that was never near its best again, with a score that agrees."""
    found = [(curve, best) for curve in curves(run, "eval_loss") if (best := _best(curve, cfg)) is not None]
    names = _score_names(run) if found else []
    for curve, best in found:
        scores = (s for name in names for s in series_of(run, name) if s.source == curve.source)
        score = next((s for s in scores if _worse(s, curve.step(best), cfg)), None)
        if score is not None:
            yield _finding(curve, score, best)
            return


def _score_names(run: Run) -> list[str]:
    found = metric_names(run)["name"].unique().drop_nulls().to_list()
    return sorted(
        n for n in found if stands_for("held_out_prefix", n) and direction(n) is not None and not is_of_loss(n)
    )


def _best(curve: Curve, cfg: Regained) -> int | None:
    if len(curve) < cfg.evaluations or curve.ends_nonfinite:
        return None
    best = int(np.argmin(curve.values))
    later = curve.values[best + 1 :]
    low = float(curve.values[best])
    return best if len(later) >= cfg.after and low > 0 and bool((later >= low * (1 + cfg.worse)).all()) else None


def _worse(score: Series, step: int | None, cfg: Regained) -> bool:
    """Whether a score was worse at every evaluation after a step than at that step."""
    if step is None or step not in score.steps:
        return False
    place = score.steps.index(step)
    then, later = score.values[place], score.values[place + 1 :]
    if len(later) < cfg.after or then <= 0:
        return False
    if direction(score.raw_name) is False:
        return all(v >= then * (1 + cfg.score) for v in later)
    return all(v <= then * (1 - cfg.score) for v in later)


def _finding(curve: Curve, score: Series, best: int) -> Finding:
    step, first = curve.step(best), curve.row(best + 1)
    then, last = score.values[score.steps.index(step)], score.values[-1]
    losses = number(float(curve.values[best])), number(float(curve.values[-1]))
    where = Locator(line=score.lines[-1], byte=score.bytes[-1])
    return never_regained.finding(
        f"{curve.raw_name} went from {losses[0]} at step {step} to {losses[1]} and never came back",
        f"{score.raw_name} agrees: {number(then)} then, {number(last)} at last, and worse in between",
        proof(
            first,
            curve.row(best),
            curve.row(-1),
            Evidence(
                score.source,
                where,
                f"{score.raw_name} = {number(last)}",
                step=score.steps[-1],
                name=score.raw_name,
                value=last,
            ),
        ),
        onset_at(first, step),
        numbers={"best": float(curve.values[best]), "last": float(curve.values[-1]), "score": last},
        next=(f"use the checkpoint of step {step}", "lower the peak learning rate and lengthen the warm-up"),
    )
