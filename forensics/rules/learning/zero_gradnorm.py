"""LRN011 zero-gradnorm: the gradient norm is exactly zero all along.

What it detects: a gradient norm of zero in nearly every record, with a loss that does not fall.

Why it matters: nothing reaches the parameters. Everything after the first step is wasted.

How it decides: `always` of the records, `records` at least, are exactly zero, and the loss did not fall. If the loss
falls, the number is only not filled in by the trainer, and nothing is said. Nor is it where reinforcement learning
gives all answers to a prompt one reward in as many records: without an advantage the gradient is zero by design.

What else looks like this: a trainer that prints zero because another library owns the gradients.

What to do next: print which parameters require gradients and which the optimizer holds; look for `detach`, `no_grad`
and `.data` on the way from the parameters to the loss; build the optimizer after wrapping the model.

References: PyTorch documentation, "Autograd mechanics", on requires_grad.

Example:
    ```metrics
    step: 10..200/10
    loss: 4.293 4.305 4.323 4.277 4.295 4.272 4.25 4.392 4.285 4.297 4.192 4.237 4.289 4.318 4.342 4.27 4.257 4.318
        4.317 4.265
    grad_norm: 0
    ```
    => LRN011 error confidence=high step=10 cause=no_gradients zeros=1.000 records=20
Not this: a loss that falls
    ```metrics
    step: 10..200/10
    loss: 4.293 4.095 3.912 3.681 3.516 3.327 3.148 3.095 2.873 2.74 2.542 2.445 2.354 2.254 2.156 2.017 1.913 1.846
        1.755 1.65
    grad_norm: 0
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.learning.losses import loss_beside
from forensics.analyses.learning.objective import improved
from forensics.analyses.rl.advantage import lacks_advantage
from forensics.case.curves.loss import curves
from forensics.rules.kit import Findings, Run, onset_at, proof, rule
from forensics.rules.learning.no_decrease import FLAT, is_flat


@dataclass(frozen=True, slots=True)
class ZeroNorm:
    """Thresholds of LRN011: the share of zeros, and the fewest records."""

    records: int = 20
    always: float = 0.95


@rule("learning", needs=("metrics",), config=ZeroNorm, severity="error", confidence="high", cause="no_gradients")
def zero_gradnorm(run: Run, cfg: ZeroNorm) -> Findings:
    """Find the first gradient norm that is zero while the loss stays."""
    if lacks_advantage(run, cfg.always):
        return
    for curve in curves(run, "grad_norm"):
        share = float((curve.values == 0).mean())
        if len(curve) < cfg.records or share < cfg.always:
            continue
        one = loss_beside(run, curve)
        if one is None or one.trend is None or not is_flat(one.trend, FLAT) or improved(run, one.curve, 1):
            continue
        loss = one.curve
        yield zero_gradnorm.finding(
            f"{curve.raw_name} is zero in {share:.0%} of the records, and the loss does not fall",
            "no gradient reaches the parameters",
            proof(curve.row(0), curve.row(-1), loss.row(-1)),
            onset_at(curve.row(0)),
            numbers={"zeros": share, "records": len(curve)},
        )
        return
