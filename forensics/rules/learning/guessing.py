"""LRN035 eval-guesses: no evaluation was ever better than guessing among the classes.

What it detects: an evaluation loss at the logarithm of the number of classes, and a score at one over that number, from
the first evaluation to the last.

Why it matters: nothing of what training does carries over to the evaluation set. The training loss may fall all the
same: a model learns random labels by heart.

How it decides: the median score is within `around` of one over k classes, two or more, and the median evaluation
loss within `near` of ln(k): both agree only for a model that answers at random, as one that knows anything is right
more often than its loss says. There are `evaluations` or more over `steps` steps, or `many`, no score is above `luck`
times one over k, and the last third of the losses is not below the first by more than `fall`.

What else looks like this: an evaluation before the warm-up of a long run is over; a test set that is too small to tell.

What to do next: overfit a single batch; then decode a few samples of both sets with their labels.

References: Zhang et al. 2017, "Understanding deep learning requires rethinking generalization"; Karpathy 2019,
"A Recipe for Training Neural Networks" (verify the loss at the start).

Example: ten classes
    ```metrics
    step: 25..250/25
    loss: 2.48 2.31 2.27 2.25 2.22 2.21 2.19 2.18 2.15 2.12
    eval_loss: 2.31 2.33 2.29 2.32 2.30 2.34 2.29 2.43 2.25 2.32
    eval/accuracy: 0.11 0.09 0.12 0.10 0.11 0.10 0.11 0.09 0.13 0.13
    ```
    => LRN035 warning confidence=medium step=25 cause=not_learning level=2.315 classes=10
Not this: it learns late
    ```metrics
    step: 25..250/25
    loss: 2.48 2.31 2.27 2.25 2.22 2.1 1.9 1.7 1.5 1.2
    eval_loss: 2.31 2.33 2.29 2.32 2.30 2.24 2.19 1.93 1.85 1.72
    eval/accuracy: 0.11 0.09 0.12 0.10 0.11 0.13 0.21 0.29 0.33 0.43
    ```
    => nothing
Not this: tokens are guessed rightly more often than the loss says
    ```metrics
    step: 25..250/25
    loss: 2.9 -*9
    eval_loss: 2.90 2.91 2.89 2.90 2.90 2.91 2.89 2.90 2.90 2.89
    eval/accuracy: 0.36 0.35 0.36 0.36 0.35 0.36 0.36 0.35 0.36 0.36
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log

import numpy as np

from forensics.analyses.evals.curves import EvalCurve, eval_curves
from forensics.rules.kit import Finding, Findings, Onset, Run, number, proof, rule


@dataclass(frozen=True, slots=True)
class Guessing:
    """Thresholds of LRN035.

    A loss within `near` of ln(k) leaves room for the confidence of a model that learned its training set by heart. The
    best of ten evaluations of a hundred samples in ten classes is below `luck` times chance in 999 of 1000 cases.
    """

    evaluations: int = 5
    steps: int = 90
    many: int = 10
    near: float = 0.1
    around: float = 0.15
    luck: float = 2.0
    fall: float = 0.05


@rule("learning", needs=("metrics",), config=Guessing, severity="warning", confidence="medium", cause="not_learning")
def guessing(run: Run, cfg: Guessing) -> Findings:
    """Find an evaluation score and its loss that stay at chance."""
    every = eval_curves(run)
    costs = [c for c in every if c.higher is False and _is_idle(c, cfg)]
    for score in (c for c in every if c.higher):
        for cost in costs:
            classes = _classes(score, cost, cfg)
            if classes:
                yield _finding(score, cost, classes)
                return


def _is_idle(cost: EvalCurve, cfg: Guessing) -> bool:
    """Whether an evaluation loss was followed for long, and never fell."""
    values, third = cost.values, max(1, len(cost.values) // 3)
    if len(values) < cfg.evaluations or values.min() <= 0:
        return False
    if len(values) < cfg.many and cost.steps[-1] - cost.steps[0] < cfg.steps:
        return False
    return bool(np.median(values[-third:]) >= (1 - cfg.fall) * np.median(values[:third]))


def _classes(score: EvalCurve, cost: EvalCurve, cfg: Guessing) -> int:
    """The number of classes among which a score and a loss say that it is guessed; 0 where they do not."""
    shares = score.values / (100.0 if score.values.max() > 1 else 1.0)
    chance, level = float(np.median(shares)), float(np.median(cost.values))
    if len(shares) < cfg.evaluations or not 0 < chance < 1:
        return 0
    about = range(max(2, ceil((1 - cfg.around) / chance)), floor((1 + cfg.around) / chance) + 1)
    classes = min(about, key=lambda k: abs(level / log(k) - 1), default=0)
    if not classes or shares.max() > min(cfg.luck / classes, (1 + 1 / classes) / 2):
        return 0
    return classes if abs(level / log(classes) - 1) <= cfg.near else 0


def _finding(score: EvalCurve, cost: EvalCurve, classes: int) -> Finding:
    level, chance = float(np.median(cost.values)), float(np.median(score.values))
    return guessing.finding(
        f"{score.name} stays at {number(chance)} in {len(score.values)} evaluations: guessing among {classes} classes",
        f"{cost.name} is {number(level)} throughout, and guessing costs ln({classes}) = {number(log(classes))}",
        proof(score.row(0), score.row(-1), cost.row(-1)),
        Onset(step=score.row(0)["at"]),
        numbers={"level": level, "classes": classes, "score": chance},
    )
