"""EVL013 eval-falls-while-loss-improves: a later checkpoint scores worse than an earlier one although the loss fell.

What it detects: a task that was better at an earlier step of the same run, beyond its errors, while the training loss
went on falling.

Why it matters: the loss hides it, and the last checkpoint is not the best; something in the data, the schedule or the
evaluation itself changed, or the model forgets.

How it decides: results of one task and metric at two or more steps, made with equal settings; the last is worse than
the best one before it by so many standard errors that chance gives it, over all results that were looked at, in less
than one of a thousand cases (Bonferroni); and the median of the last training losses before the later step is lower.

What else looks like this: fine-tuning towards another goal, where a fall elsewhere is the known price.

What to do next: use the checkpoint of the better step; compare the two with `forensics diff --section config,evals`;
look at what the data gave between the two steps.

References: McCloskey and Cohen 1989 (catastrophic interference).

Example:
    ```evals source,line,task,metric,value,stderr,step
    a.json,7,arc_easy,acc,0.61,0.010,1000
    b.json,7,arc_easy,acc,0.52,0.010,2000
    ```
    ```metrics step,name,value
    980,loss,2.31
    990,loss,2.30
    1000,loss,2.29
    1980,loss,2.12
    1990,loss,2.11
    2000,loss,2.10
    ```
    => EVL013 error confidence=medium step=2000 step_lo=1000 cause=eval_falls best=0.6100 errors=6.364
Not this:
    ```evals source,line,task,metric,value,stderr,step
    a.json,7,arc_easy,acc,0.61,0.010,1000
    b.json,7,arc_easy,acc,0.59,0.010,2000
    ```
    ```metrics step,name,value
    980,loss,2.31
    990,loss,2.30
    1000,loss,2.29
    1980,loss,2.12
    1990,loss,2.11
    2000,loss,2.10
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot, isfinite
from statistics import NormalDist

import numpy as np

from forensics.case.evidence import metric_evidence
from forensics.model import Causal, Confidence, Evidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.bad_eval._results import masked, name_of, result_evidence
from forensics.signals.eval_settings import compared
from forensics.signals.evals import Row, courses, higher_is_better
from forensics.signals.loss_curve import Curve, curves
from forensics.store.run import Run

_AT = "at"


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of EVL013: `alpha` over all results, `fall` the least one of the loss, `records` a median's."""

    alpha: float = 0.001
    fall: float = 0.005
    records: int = 10


@dataclass(frozen=True, slots=True)
class _Fall:
    best: Row
    last: Row
    errors: float


@rule("EVL013", shape=Shape.BAD_EVAL, needs=("evals", "metrics"), config=Config)
def falls_while_loss_improves(run: Run, cfg: Config | None = None) -> Iterator[Finding]:
    """Find the task that fell furthest between two steps while the loss fell too."""
    cfg = cfg or Config()
    every = [[r for r in rows if r["step"] is not None and isfinite(r["value"])] for rows in courses(run).values()]
    every = [rows for rows in every if len({r["step"] for r in rows}) > 1]
    looked = sum(len(rows) - 1 for rows in every)
    if not looked:
        return
    bound = NormalDist().inv_cdf(1 - cfg.alpha / looked)
    falls = [found for rows in every if (found := _fall(rows)) is not None and found.errors > bound]
    losses = curves(run, "loss")
    for found in sorted(falls, key=lambda f: -f.errors):
        improved = next((hit for c in losses if (hit := _improved(c, found, cfg)) is not None), None)
        if improved is not None:
            yield _finding(found, improved, len(falls))
            return


def _fall(rows: Sequence[Row]) -> _Fall | None:
    last = rows[-1]
    better = higher_is_better(last)
    if better is None or not last["stderr"]:
        return None
    sign = 1 if better else -1
    before = [
        r
        for r in rows[:-1]
        if r["step"] < last["step"]
        and r["stderr"]
        and masked(r["model"]) == masked(last["model"])
        and not compared(r, last).blocks
    ]
    if not before:
        return None
    best = max(before, key=lambda r: sign * r["value"])
    gap = sign * (best["value"] - last["value"])
    return _Fall(best, last, gap / hypot(best["stderr"], last["stderr"]))


def _improved(curve: Curve, found: _Fall, cfg: Config) -> tuple[Evidence, Evidence] | None:
    at = curve.rows[_AT].to_numpy()
    ends = [int((at <= row["step"]).sum()) for row in (found.best, found.last)]
    if ends[0] < 1 or ends[1] <= ends[0]:
        return None
    start = max(ends[0], ends[1] - cfg.records)
    then = float(np.median(curve.values[max(0, ends[0] - cfg.records) : ends[0]]))
    now = float(np.median(curve.values[start : ends[1]]))
    if not now < then * (1 - cfg.fall):
        return None
    rows = curve.row(ends[0] - 1), curve.row(ends[1] - 1)
    return metric_evidence(rows[0], EvidenceRole.RELATED), metric_evidence(rows[1], EvidenceRole.RELATED)


def _finding(found: _Fall, losses: tuple[Evidence, Evidence], count: int) -> Finding:
    best, last = found.best, found.last
    more = f"; {count} results fell like that" if count > 1 else ""
    return Finding(
        rule="EVL013",
        shape=Shape.BAD_EVAL,
        severity=Severity.ERROR,
        confidence=Confidence.MEDIUM,
        title=(
            f"{name_of(last)} went from {best['value']:.4g} at step {best['step']} to {last['value']:.4g} at step "
            f"{last['step']} while the loss fell{more}"
        ),
        because=f"the fall is {found.errors:.1f} standard errors, with equal settings on both sides",
        evidence=(result_evidence(last), result_evidence(best, EvidenceRole.RELATED), *losses),
        onset=Onset(step=last["step"], step_lo=best["step"]),
        cause="eval_falls",
        causal=Causal.ROOT,
        numbers={"best": best["value"], "last": last["value"], "errors": found.errors},
        likely=("the data mix changed between the steps", "overfitting, or forgetting in fine-tuning", "a decayed LR"),
        next=(
            f"use the checkpoint of step {best['step']}",
            "compare with a good run: forensics diff GOOD BAD --section config --section evals",
        ),
    )
