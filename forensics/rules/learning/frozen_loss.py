"""LRN014 frozen-loss: the training loss does not move: exactly zero, the same digits, or dead after a few steps.

What it detects: a loss of exactly zero without a gradient; a loss that is printed with the same digits again and again;
a loss that died at one value after a step too large.

Why it matters: no step changed anything, or what is logged is not the loss.

How it decides: a loss of zero in `few` records or more, with a gradient norm of zero, is an error (all labels are
masked); without a logged gradient norm it is a warning, and beside gradients it is only rounded. A value of `telling`
significant digits is frozen after `repeats` records, one of fewer digits after `records`. With a learning rate or a
gradient norm of zero, or with `many` records, that is an error, else a warning. A loss that stays at one value `above`
its best is an error; one that moved and then kept a value no better than its first is a warning. All training losses
of the run must agree.

What else looks like this: a loss that is logged once and repeated; a value rounded to one digit; a policy loss that is
zero by construction.

What to do next: decode a batch with its label mask; print which parameters require gradients; log the loss of the
batch and not a stored one.

References: Karpathy 2019, "A Recipe for Training Neural Networks".

Example:
    ```metrics
    step: 10..200/10
    loss: 6.217
    lr: 0
    ```
    => LRN014 error confidence=high step=10 cause=frozen_loss value=6.217 records=20
Example: a loss that died after a few large steps
    ```metrics
    step: 0..25
    loss: 0.7012 1.8841 4.2077 0.9125 0.7031*22
    ```
    => LRN014 warning confidence=medium step=4 cause=frozen_loss value=0.7031 records=22
Example: all labels masked
    ```metrics
    step: 1..4
    loss: 0
    grad_norm: 0
    ```
    => LRN014 error confidence=high step=1 cause=loss_zero value=0.000 records=4
Example: a loss that died at once
    ```metrics
    step: 1..12
    loss: 2.5 9.75 9.25*10
    ```
    => LRN014 error confidence=medium step=2 cause=frozen_loss value=9.250
Example: the same digits in every epoch
    ```metrics
    epoch: 1..9
    loss: 2.3026
    ```
    => LRN014 warning confidence=medium cause=frozen_loss value=2.303 records=9
Not this: a loss of zero beside gradients is rounded
    ```metrics
    step: 1..4
    loss: 0
    grad_norm: 0.31 0.42 0.29 0.35
    ```
    => nothing
Not this: a loss that rounds to the same digits now and then
    ```metrics
    step: 10..200/10
    loss: 4.293 4.234 4.182 4.068 4.018 3.93 3.845 3.908 3.75 3.698 3.548 3.527 3.511 3.477 3.438 3.325 3.26 3.253
        3.198 3.107
    ```
    => nothing
"""

from __future__ import annotations

from math import exp

from forensics.analyses.learning.objective import reinforced
from forensics.analyses.learning.still import Frozen, Still, still_of
from forensics.rules.kit import Findings, Run, number, onset_at, proof, rule

#: The largest loss in nats that a uniform answer costs: over a million classes.
_UNIFORM = 14.0


@rule("learning", needs=("metrics",), config=Frozen)
def frozen_loss(run: Run, cfg: Frozen) -> Findings:
    """Find the loss that does not move."""
    still = None if reinforced(run) else still_of(run, cfg)
    if still is None:
        return
    curve, first = still.loss.curve, still.loss.curve.row(still.left)
    sure = still.how != "froze" and (still.idle is not None or still.how == "stuck" or still.count >= cfg.many)
    masked = still.how == "masked"
    yield frozen_loss.finding(
        _title(still),
        _because(still),
        proof(
            first,
            curve.row(0) if still.left else None,
            curve.row(-1),
            still.idle.row(-1) if still.idle is not None else None,
        ),
        onset_at(first),
        severity="error" if sure else "warning",
        confidence="high" if sure and still.how != "stuck" else "medium",
        cause="loss_zero" if masked else "frozen_loss",
        numbers={"value": still.value, "records": still.count},
    )


def _title(still: Still) -> str:
    curve, value = still.loss.curve, number(still.value)
    if still.how in {"masked", "frozen"}:
        return f"{curve.raw_name} is {value} in every one of {still.count} records"
    if still.how == "stuck":
        return f"{curve.raw_name} is frozen: {number(float(curve.values.min()))} → {value}"
    began = number(float(curve.values[0]))
    return f"{curve.raw_name} froze at {value} for its last {still.count} records; it began at {began}"


def _because(still: Still) -> str:
    if still.how == "stuck" and 1 < still.value < _UNIFORM:
        classes = round(exp(still.value))
        return f"every later record is the same; ln({classes}) is what a uniform answer over that many classes costs"
    if still.idle is not None:
        return f"{still.idle.raw_name} is zero throughout"
    return "nothing is learned from a loss of zero" if still.how == "masked" else "batches differ, so a loss should"
