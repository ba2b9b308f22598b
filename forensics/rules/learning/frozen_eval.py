"""LRN034 frozen-eval: the evaluation loss repeats to the last digit while training goes on.

What it detects: evaluations whose loss is the same number again and again after it had moved: no weight changes.

Why it matters: the training loss goes on varying with its batches, so its curve looks alive while nothing is learned.

How it decides: at least `repeats` evaluations at the end, half of all or more, print one loss of `digits` significant
digits or more, as the most precise value of the series has them. One set gives one loss to all digits only where the
weights are the same. The training loss beside it, where one is logged, still varies.

What else looks like this: a learning rate whose schedule ended at zero before training did; an evaluation whose result
is stored and printed again.

What to do next: print the learning rate and a weight's norm before and after a step; check which parameters the
optimizer holds and whether they require gradients.

References: Karpathy 2019, "A Recipe for Training Neural Networks".

Example:
    ```metrics
    step: 1..20
    loss: 4.1432 4.0423 3.8346 3.503 2.9403 2.1705 1.7148 1.64 1.6346 1.8071 1.7417 1.78 1.697 1.9321 1.6567 1.6403
        1.7713 1.6352 1.9071 1.635
    ```
    ```metrics step,name,value
    5,eval_loss,2.4289
    10,eval_loss,1.6411
    15,eval_loss,1.6411
    20,eval_loss,1.6411
    ```
    => LRN034 warning confidence=medium step=10 step_lo=5 cause=frozen_loss value=1.641 evaluations=3
Not this: two evaluations agree when the learning rate has decayed
    ```metrics step,name,value
    5,eval_loss,2.4289
    10,eval_loss,1.9172
    15,eval_loss,1.6411
    20,eval_loss,1.6411
    ```
    => nothing
Not this: values of three digits agree by rounding
    ```metrics step,name,value
    5,eval_loss,2.42
    10,eval_loss,1.64
    15,eval_loss,1.64
    20,eval_loss,1.64
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from forensics.case.curves.loss import Curve, curves
from forensics.rules.kit import Findings, Run, number, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class FrozenEval:
    """Thresholds of LRN034: evaluations that agree, their share of all, and the digits that make chance agree rarely.

    An evaluation loss that still falls by a thousandth repeats five digits once in a hundred, three times once in 10⁴.
    """

    repeats: int = 3
    share: float = 0.5
    digits: int = 5


@rule("learning", needs=("metrics",), config=FrozenEval, severity="warning", confidence="medium", cause="frozen_loss")
def frozen_eval(run: Run, cfg: FrozenEval) -> Findings:
    """Find the first evaluation loss that moved and then repeats."""
    for evals in curves(run, "eval_loss"):
        start = _since(evals)
        count = len(evals) - start
        if start and count >= max(cfg.repeats, cfg.share * len(evals)) and _digits(evals) >= cfg.digits:
            value = float(evals.values[-1])
            yield frozen_eval.finding(
                f"{evals.raw_name} is {number(value)} to the last digit in its last {count} evaluations",
                "one evaluation set gives one loss only where no weight changed between",
                proof(evals.row(start), evals.row(start - 1), evals.row(-1)),
                onset_at(evals.row(start), evals.step(start - 1)),
                numbers={"value": value, "evaluations": count},
            )
            return


def _since(evals: Curve) -> int:
    """The position from which on every evaluation has the last one's value."""
    other = np.flatnonzero(evals.values != evals.values[-1]) if len(evals) else np.zeros(0)
    return int(other[-1]) + 1 if len(other) else 0


def _digits(evals: Curve) -> int:
    """Significant digits of the most precise value: a file drops the zeros at the end of the others."""
    return max(len(Decimal(repr(float(value))).normalize().as_tuple().digits) for value in evals.values)
