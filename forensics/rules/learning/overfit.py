"""LRN002 overfit: the evaluation loss rose evaluation after evaluation while the training loss went to nothing.

What it detects: a model that learns its training set by heart.

Why it matters: the last checkpoint is worse than an earlier one, and nothing in the training loss says so.

How it decides: at least five evaluations; from its lowest value on the evaluation loss only rises, at least three
times and by at least a quarter; meanwhile the training loss fell to a third of what it was or less. All must hold.

What else looks like this: an evaluation set that changes during the run; another metric (word error rate, accuracy)
that still improves while the loss rises: then the choice of the metric decides which checkpoint is best.

What to do next: take the checkpoint at the lowest evaluation loss; stop earlier, regularise, or add data.

References: Prechelt 1998, "Early Stopping: But When?".

Example:
    ```metrics step,name,value
    10,loss,1.5
    10,eval_loss,1.0
    20,loss,0.5
    20,eval_loss,1.25
    30,loss,0.25
    30,eval_loss,1.5
    40,loss,0.125
    40,eval_loss,1.75
    50,loss,0.0625
    50,eval_loss,2.0
    ```
    => LRN002 error step=20
Not this:
    ```metrics step,name,value
    10,loss,1.5
    10,eval_loss,1.5
    20,loss,1.25
    20,eval_loss,1.25
    30,loss,1.25
    30,eval_loss,1.25
    40,loss,1.0
    40,eval_loss,1.25
    50,loss,1.0
    50,eval_loss,1.5
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from forensics.model import Causal, Confidence, Evidence, EvidenceRole, Finding, Locator, Onset, Severity, Shape
from forensics.registry import rule
from forensics.signals.losses import Series, series_of
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of LRN002, all of which must hold."""

    evaluations: int = 5
    rises: int = 3
    rise: float = 0.25
    training_left: float = 1 / 3


@rule("LRN002", shape=Shape.LEARNING, needs=("metrics",), config=Config)
def overfit(run: Run, cfg: Config | None = None) -> Iterator[Finding]:
    """Find the first evaluation loss that rises to the end while the training loss vanishes."""
    cfg = cfg or Config()
    training = [s for s in series_of(run, "loss") if len(s) >= cfg.evaluations]
    for series in series_of(run, "eval_loss"):
        best = _best(series, cfg)
        if best is not None and any(_vanished(t, series.steps[best], cfg) for t in training):
            yield _finding(series, best)
            return


def _best(series: Series, cfg: Config) -> int | None:
    """Give the index of the lowest value if the series only rises from there, far enough."""
    values = series.values
    if len(values) < cfg.evaluations:
        return None
    best = min(range(len(values)), key=values.__getitem__)
    tail = values[best:]
    rising = len(tail) > cfg.rises and all(b > a for a, b in pairwise(tail))
    return best if rising and tail[0] > 0 and tail[-1] >= tail[0] * (1 + cfg.rise) else None


def _vanished(training: Series, step: int | None, cfg: Config) -> bool:
    if step is None:
        return False
    then = [v for s, v in zip(training.steps, training.values, strict=True) if s is not None and s <= step]
    return bool(then) and training.values[-1] >= 0 and training.values[-1] <= cfg.training_left * then[-1]


def _finding(series: Series, best: int) -> Finding:
    low, last = series.values[best], series.values[-1]
    step, rising = series.steps[best], series.steps[best + 1]
    return Finding(
        rule="LRN002",
        shape=Shape.LEARNING,
        severity=Severity.ERROR,
        confidence=Confidence.MEDIUM,
        title=f"{series.raw_name} rose from {low:.4g} at step {step} to {last:.4g} while the training loss vanished",
        because="every evaluation after the lowest is worse than the one before it",
        evidence=(
            _evidence(series, best + 1, EvidenceRole.PRIMARY),
            _evidence(series, best, EvidenceRole.RELATED),
            _evidence(series, len(series) - 1, EvidenceRole.RELATED),
        ),
        onset=Onset(step=rising, t_ns=series.times[best + 1], rank=series.rank, step_lo=step),
        cause="overfit",
        causal=Causal.ROOT,
        numbers={"best": low, "last": last},
        next=(f"use the checkpoint of step {step}",),
    )


def _evidence(series: Series, i: int, role: EvidenceRole) -> Evidence:
    return Evidence(
        source=series.source,
        locator=Locator(line=series.lines[i], byte=series.bytes[i]),
        quote=f"{series.raw_name} = {series.values[i]:.6g} at step {series.steps[i]}",
        step=series.steps[i],
        rank=series.rank,
        t_ns=series.times[i],
        name=series.name,
        value=series.values[i],
        role=role,
    )
