"""LRN020 eval-apart: the evaluation loss is far from the training loss from the first evaluation on.

What it detects: in a supervised fine-tuning, an evaluation loss that lies above the training loss by the same amount in
every evaluation, or far below it.

Why it matters: a constant gap is no overfitting, which grows: the evaluation set is of another domain, or is prepared
in another way (template, mask, truncation). An evaluation loss far below the training loss is mostly a leak: the
samples of the evaluation were trained on.

How it decides: only in supervised fine-tuning, where both losses are means over the same kind of tokens. Each
evaluation is compared with the median of the training losses since the one before. Above: `above` times, by `gap` or
more, at each of `evaluations` or more, while the gap changes by less than `moves` of itself. Below: `below` times or
less and by `gap` or more at each.

What else looks like this: dropout and label smoothing, which raise the training loss alone, by less; a training loss
that is summed.

What to do next: decode samples of both sets as the model sees them; search the evaluation samples in the training set.

References: Recht et al. 2019, "Do ImageNet Classifiers Generalize to ImageNet?", on shifted test sets; Elangovan et al.
2021, "Memorization vs. Generalization", on leaks between splits.

Example:
    ```metrics
    step: 10..50/10
    loss: 1.2 1.1 1.0 1.0 0.9
    eval_loss: 3.4 3.3 3.2 3.2 3.1
    ```
    ```facts key,value,family
    stage,sft,config
    ```
    => LRN020 warning confidence=medium step=10 cause=eval_shifted gap=2.200 train=1.000
Not this: a gap that grows is overfitting
    ```metrics
    step: 10..50/10
    loss: 1.2 1.0 0.8 0.6 0.5
    eval_loss: 1.3 1.3 1.4 1.5 1.7
    ```
    ```facts key,value,family
    stage,sft,config
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.analyses.learning.regime import ADAPTER, FULL, regime_of
from forensics.case.curves.loss import Curve, beside, curves
from forensics.rules.kit import Finding, Findings, Run, number, onset_at, proof, rule
from forensics.stats.spread import Floats


@dataclass(frozen=True, slots=True)
class Apart:
    """Thresholds of LRN020; `gap` is in nats: half a nat is a third of what chat data give.

    Dropout of 0.1 and label smoothing of 0.1 raise a training loss by less than `below` allows for.
    """

    evaluations: int = 3
    above: float = 1.5
    below: float = 0.6
    gap: float = 0.5
    moves: float = 0.5


@rule("learning", needs=("metrics", "facts"), config=Apart, severity="warning", confidence="medium")
def eval_apart(run: Run, cfg: Apart) -> Findings:
    """Find the first evaluation loss that lies apart from the training loss of its source."""
    if regime_of(run) not in {ADAPTER, FULL}:
        return
    for evals in curves(run, "eval_loss"):
        training = beside(run, evals, "loss")
        levels = None if training is None else _levels(training, evals)
        if levels is None or len(evals) < cfg.evaluations:
            continue
        gaps = evals.values - levels
        if bool((gaps >= cfg.gap).all() and (evals.values >= cfg.above * levels).all()):
            if float(np.ptp(gaps)) < cfg.moves * float(np.median(gaps)):
                yield _finding(evals, levels, "above", "eval_shifted")
                return
        elif bool((-gaps >= cfg.gap).all() and (evals.values <= cfg.below * levels).all()):
            yield _finding(evals, levels, "below", "eval_leak")
            return


def _levels(training: Curve, evals: Curve) -> Floats | None:
    """The median training loss before each evaluation, back to the one before; None where one has none."""
    ends = np.searchsorted(training.places, evals.places)
    starts = np.concatenate([[0], ends[:-1]])
    if (ends <= starts).any():
        return None
    return np.array([np.median(training.values[a:b]) for a, b in zip(starts, ends, strict=True)])


def _finding(evals: Curve, levels: Floats, side: str, cause: str) -> Finding:
    gap, level = float(np.median(evals.values - levels)), float(np.median(levels))
    return eval_apart.finding(
        f"{evals.raw_name} is {number(round(abs(gap), 3))} {side} the training loss from the first evaluation on",
        f"{number(float(evals.values[0]))} beside {number(float(levels[0]))} at first,"
        f" {number(float(evals.values[-1]))} beside {number(float(levels[-1]))} at last"
        + (": overfitting would grow" if side == "above" else ""),
        proof(evals.row(0), evals.row(-1)),
        onset_at(evals.row(0)),
        cause=cause,
        numbers={"gap": gap, "train": level},
    )
