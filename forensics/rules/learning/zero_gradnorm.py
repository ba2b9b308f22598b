"""LRN011 zero-gradnorm: the gradient norm is exactly zero all along.

What it detects: a gradient norm of zero in nearly every record, with a loss that does not fall.

Why it matters: nothing reaches the parameters. Everything after the first step is wasted.

How it decides: `always` of the records, `records` at least, are exactly zero, and the loss did not fall. If the loss
falls, the number is only not filled in by the trainer, and nothing is said.

What else looks like this: a trainer that prints zero because another library owns the gradients.

What to do next: print which parameters require gradients and which the optimizer holds; look for `detach`, `no_grad`
and `.data` on the way from the parameters to the loss; build the optimizer after wrapping the model.

References: PyTorch documentation, "Autograd mechanics", on requires_grad.

Example:
    ```metrics step,name,value
    10,loss,4.293
    20,loss,4.305
    30,loss,4.323
    40,loss,4.277
    50,loss,4.295
    60,loss,4.272
    70,loss,4.25
    80,loss,4.392
    90,loss,4.285
    100,loss,4.297
    110,loss,4.192
    120,loss,4.237
    130,loss,4.289
    140,loss,4.318
    150,loss,4.342
    160,loss,4.27
    170,loss,4.257
    180,loss,4.318
    190,loss,4.317
    200,loss,4.265
    ```
    ```metrics step,name,value
    10,grad_norm,0
    20,grad_norm,0
    30,grad_norm,0
    40,grad_norm,0
    50,grad_norm,0
    60,grad_norm,0
    70,grad_norm,0
    80,grad_norm,0
    90,grad_norm,0
    100,grad_norm,0
    110,grad_norm,0
    120,grad_norm,0
    130,grad_norm,0
    140,grad_norm,0
    150,grad_norm,0
    160,grad_norm,0
    170,grad_norm,0
    180,grad_norm,0
    190,grad_norm,0
    200,grad_norm,0
    ```
    => LRN011 error confidence=high step=10 cause=no_gradients zeros=1.000 records=20
Not this: a loss that falls
    ```metrics step,name,value
    10,loss,4.293
    20,loss,4.095
    30,loss,3.912
    40,loss,3.681
    50,loss,3.516
    60,loss,3.327
    70,loss,3.148
    80,loss,3.095
    90,loss,2.873
    100,loss,2.74
    110,loss,2.542
    120,loss,2.445
    130,loss,2.354
    140,loss,2.254
    150,loss,2.156
    160,loss,2.017
    170,loss,1.913
    180,loss,1.846
    190,loss,1.755
    200,loss,1.65
    ```
    ```metrics step,name,value
    10,grad_norm,0
    20,grad_norm,0
    30,grad_norm,0
    40,grad_norm,0
    50,grad_norm,0
    60,grad_norm,0
    70,grad_norm,0
    80,grad_norm,0
    90,grad_norm,0
    100,grad_norm,0
    110,grad_norm,0
    120,grad_norm,0
    130,grad_norm,0
    140,grad_norm,0
    150,grad_norm,0
    160,grad_norm,0
    170,grad_norm,0
    180,grad_norm,0
    190,grad_norm,0
    200,grad_norm,0
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.analyses.learning.losses import loss_beside
from forensics.analyses.learning.objective import improved
from forensics.case.curves.loss import curves
from forensics.case.evidence import metric_evidence
from forensics.model import Causal, Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.learning.no_decrease import FLAT, LIKELY, NEXT, is_flat
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class ZeroNorm:
    """Thresholds of LRN011: the share of zeros, and the fewest records."""

    records: int = 20
    always: float = 0.95


@rule("LRN011", shape=Shape.LEARNING, needs=("metrics",), config=ZeroNorm)
def zero_gradnorm(run: Run, cfg: ZeroNorm | None = None) -> Iterator[Finding]:
    """Find the first gradient norm that is zero while the loss stays."""
    cfg = cfg or ZeroNorm()
    for curve in curves(run, "grad_norm"):
        share = float((curve.values == 0).mean())
        if len(curve) < cfg.records or share < cfg.always:
            continue
        one = loss_beside(run, curve)
        if one is None or one.trend is None or not is_flat(one.trend, FLAT) or improved(run, one.curve, 1):
            continue
        loss = one.curve
        yield Finding(
            rule="LRN011",
            shape=Shape.LEARNING,
            severity=Severity.ERROR,
            confidence=Confidence.HIGH,
            title=f"{curve.raw_name} is zero in {share:.0%} of the records, and the loss does not fall",
            because="no gradient reaches the parameters",
            evidence=(
                metric_evidence(curve.row(0)),
                metric_evidence(curve.row(-1), EvidenceRole.RELATED),
                metric_evidence(loss.row(-1), EvidenceRole.RELATED),
            ),
            onset=Onset(step=curve.step(0), t_ns=curve.row(0)["t_ns"], rank=curve.rank),
            cause="no_gradients",
            causal=Causal.ROOT,
            numbers={"zeros": share, "records": len(curve)},
            likely=LIKELY[:2],
            next=NEXT,
        )
        return
