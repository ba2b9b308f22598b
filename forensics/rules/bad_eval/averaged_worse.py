"""EVL023 averaged-weights-worse: the averaged weights (EMA) score far worse than the weights themselves.

What it detects: an evaluation metric that was logged for the weights and for their average, of which the average is
clearly worse at the end.

Why it matters: what is evaluated and kept is usually the average; a decay too near to one, or one that never starts,
leaves it far behind the training, with a sensible loss.

How it decides: two logged evaluation metrics whose names differ by `ema` alone, with a known direction; at the last
three common steps the average is worse by more than a tenth each time.

What else looks like this: the first steps of a run, where any average lags: hence the last steps only.

What to do next: choose the decay so that 1 / (1 - decay) is a small part of the steps; evaluate the weights themselves.

References: Izmailov et al. 2018; Karras et al. 2024, "Analyzing and Improving the Training Dynamics", on EMA lengths.

Example:
    ```metrics
    step: 100 200 300
    val/loss: 2.0 1.8 1.6
    val/loss_ema: 6.0 5.2 4.6
    ```
    => EVL023 warning confidence=medium step=300 cause=averaged_weights averaged=4.600 plain=1.600
Not this:
    ```metrics
    step: 100 200 300
    val/loss: 2.0 1.8 1.6
    val/loss_ema: 2.1 1.75 1.5
    ```
    => nothing
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from forensics.analyses.evals.curves import EvalCurve, eval_curves
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule

_EMA = re.compile(r"(?i)[_/. -]?(?<![a-z])(?:ema|averaged|swa)(?![a-z])[_/. -]?")


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of EVL023: by what share the average is worse, at how many last steps."""

    worse: float = 0.1
    last: int = 3


@rule("bad_eval", needs=("metrics",), config=Config, severity="warning", confidence="medium", cause="averaged_weights")
def averaged_worse(run: Run, cfg: Config) -> Findings:
    """Compare each averaged metric with its plain one."""
    every = eval_curves(run)
    plain = {_EMA.sub("/", c.name).strip("/"): c for c in every if not _EMA.search(c.name)}
    plain |= {re.sub(r"[_/. -]", "/", name): c for name, c in plain.items()}
    for curve in every:
        name = re.sub(r"[_/. -]", "/", _EMA.sub("/", curve.name).strip("/"))
        own = plain.get(name) if _EMA.search(curve.name) and curve.higher is not None else None
        places = _far(own, curve, cfg) if own is not None else None
        if own is not None and places is not None:
            yield _finding(own, curve, places)
            return


def _far(own: EvalCurve, averaged: EvalCurve, cfg: Config) -> tuple[int, int] | None:
    """The last common places, where the average is the worse one at each of the last common steps."""
    _, left, right = np.intersect1d(own.steps, averaged.steps, return_indices=True)
    if len(left) < cfg.last:
        return None
    a, b = own.values[left[-cfg.last :]], averaged.values[right[-cfg.last :]]
    gaps = (a - b if averaged.higher else b - a) / np.maximum(np.abs(a), 1e-12)
    return (int(left[-1]), int(right[-1])) if bool((gaps > cfg.worse).all()) else None


def _finding(own: EvalCurve, averaged: EvalCurve, places: tuple[int, int]) -> Finding:
    mine, other = own.row(places[0]), averaged.row(places[1])
    return averaged_worse.finding(
        f"{averaged.name} is {other['value']:.4g} at step {other['at']}, without averaging {mine['value']:.4g}",
        "the average of the weights scores worse than the weights at the last steps",
        proof(other, mine),
        Onset(step=other["at"]),
        numbers={"averaged": other["value"], "plain": mine["value"]},
    )
