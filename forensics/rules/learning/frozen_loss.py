"""LRN014 frozen-loss: the training loss has the very same value in every record.

What it detects: a loss that is printed with the same digits from the first records to the last.

Why it matters: no step changed anything, or what is logged is not the loss.

How it decides: `share` of the records, `records` at least, have one value, which is above `least`, so that it is not
rounding; and there are digits enough that noise would show. With a learning rate or a gradient norm of zero, or with
`many` records, it is an error, else a warning. A loss that moved at first and then kept one value, for `records` at
least and for more than half of all, is a warning where that value is not below the first one: nothing was learned.

What else looks like this: a loss that is logged once and repeated; a value rounded to one digit.

What to do next: print which parameters require gradients; log the loss of the batch and not a stored one.

References: Karpathy 2019, "A Recipe for Training Neural Networks".

Example:
    ```metrics step,name,value
    10,loss,6.217
    20,loss,6.217
    30,loss,6.217
    40,loss,6.217
    50,loss,6.217
    60,loss,6.217
    70,loss,6.217
    80,loss,6.217
    90,loss,6.217
    100,loss,6.217
    110,loss,6.217
    120,loss,6.217
    130,loss,6.217
    140,loss,6.217
    150,loss,6.217
    160,loss,6.217
    170,loss,6.217
    180,loss,6.217
    190,loss,6.217
    200,loss,6.217
    ```
    ```metrics step,name,value
    10,lr,0
    20,lr,0
    30,lr,0
    40,lr,0
    50,lr,0
    60,lr,0
    70,lr,0
    80,lr,0
    90,lr,0
    100,lr,0
    110,lr,0
    120,lr,0
    130,lr,0
    140,lr,0
    150,lr,0
    160,lr,0
    170,lr,0
    180,lr,0
    190,lr,0
    200,lr,0
    ```
    => LRN014 error confidence=high step=10 cause=frozen_loss value=6.217 records=20
Example: a loss that died after a few large steps
    ```metrics step,name,value
    0,loss,0.7012
    1,loss,1.8841
    2,loss,4.2077
    3,loss,0.9125
    4,loss,0.7031
    5,loss,0.7031
    6,loss,0.7031
    7,loss,0.7031
    8,loss,0.7031
    9,loss,0.7031
    10,loss,0.7031
    11,loss,0.7031
    12,loss,0.7031
    13,loss,0.7031
    14,loss,0.7031
    15,loss,0.7031
    16,loss,0.7031
    17,loss,0.7031
    18,loss,0.7031
    19,loss,0.7031
    20,loss,0.7031
    21,loss,0.7031
    22,loss,0.7031
    23,loss,0.7031
    24,loss,0.7031
    25,loss,0.7031
    ```
    => LRN014 warning confidence=medium step=4 cause=frozen_loss value=0.7031 records=22
Not this: a loss that rounds to the same digits now and then
    ```metrics step,name,value
    10,loss,4.293
    20,loss,4.234
    30,loss,4.182
    40,loss,4.068
    50,loss,4.018
    60,loss,3.93
    70,loss,3.845
    80,loss,3.908
    90,loss,3.75
    100,loss,3.698
    110,loss,3.548
    120,loss,3.527
    130,loss,3.511
    140,loss,3.477
    150,loss,3.438
    160,loss,3.325
    170,loss,3.26
    180,loss,3.253
    190,loss,3.198
    200,loss,3.107
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics.case.evidence import metric_evidence, number
from forensics.model import Causal, Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.learning._contrary import reinforced
from forensics.rules.learning.no_decrease import LIKELY, NEXT
from forensics.signals.loss_curve import Curve, beside, curves
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Frozen:
    """Thresholds of LRN014; a value below `least` may be rounded, one with fewer than `digits` decimals is."""

    records: int = 20
    many: int = 50
    share: float = 0.98
    least: float = 0.02
    digits: int = 2


@rule("LRN014", shape=Shape.LEARNING, needs=("metrics",), config=Frozen)
def frozen_loss(run: Run, cfg: Frozen | None = None) -> Iterator[Finding]:
    """Find the first loss that never changes."""
    cfg = cfg or Frozen()
    if reinforced(run):
        return
    known = [c for c in curves(run, "loss") if len(c) >= cfg.records]
    if not known:
        return
    if not all(_is_frozen(c, cfg) for c in known):
        yield from _froze(known, cfg)
        return
    curve = max(known, key=len)
    other = next(
        (o for n in ("lr", "grad_norm") if (o := beside(run, curve, n)) is not None and not o.values.any()), None
    )
    sure = other is not None or len(curve) >= cfg.many
    yield Finding(
        rule="LRN014",
        shape=Shape.LEARNING,
        severity=Severity.ERROR if sure else Severity.WARNING,
        confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
        title=f"{curve.raw_name} is {number(float(curve.values[-1]))} in every one of {len(curve)} records",
        because=f"{other.raw_name} is zero throughout" if other is not None else "batches differ, so a loss should",
        evidence=(
            metric_evidence(curve.row(0)),
            metric_evidence(curve.row(-1), EvidenceRole.RELATED),
            *((metric_evidence(other.row(-1), EvidenceRole.RELATED),) if other is not None else ()),
        ),
        onset=Onset(step=curve.step(0), t_ns=curve.row(0)["t_ns"], rank=curve.rank),
        cause="frozen_loss",
        causal=Causal.ROOT,
        numbers={"value": float(curve.values[-1]), "records": len(curve)},
        likely=LIKELY[:2],
        next=NEXT,
    )


def _is_frozen(curve: Curve, cfg: Frozen) -> bool:
    last = float(curve.values[-1])
    if _rounded(last, cfg):
        return False
    return float((curve.values == last).mean()) >= cfg.share


def _froze(known: list[Curve], cfg: Frozen) -> Iterator[Finding]:
    """Find a loss that stopped at a value which is no better than its first."""
    for curve in known:
        first, last = float(curve.values[0]), float(curve.values[-1])
        away = np.flatnonzero(curve.values != last)
        start = int(away[-1]) + 1 if len(away) else 0
        count = len(curve) - start
        if _rounded(last, cfg) or last < first or count < cfg.records or 2 * count <= len(curve):
            continue
        yield Finding(
            rule="LRN014",
            shape=Shape.LEARNING,
            severity=Severity.WARNING,
            confidence=Confidence.MEDIUM,
            title=f"{curve.raw_name} froze at {number(last)} for its last {count} records; it began at {number(first)}",
            because="batches differ, so a loss should",
            evidence=(
                metric_evidence(curve.row(start)),
                metric_evidence(curve.row(0), EvidenceRole.RELATED),
                metric_evidence(curve.row(-1), EvidenceRole.RELATED),
            ),
            onset=Onset(step=curve.step(start), t_ns=curve.row(start)["t_ns"], rank=curve.rank),
            cause="frozen_loss",
            causal=Causal.ROOT,
            numbers={"value": last, "records": count},
            likely=("dead units or saturated outputs after a step too large", *LIKELY[:2]),
            next=NEXT,
        )
        return


def _rounded(value: float, cfg: Frozen) -> bool:
    return abs(value) < cfg.least or abs(value) == round(abs(value), cfg.digits - 1)
