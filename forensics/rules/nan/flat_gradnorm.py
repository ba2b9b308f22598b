"""NAN003 nan-flat-gradnorm: the gradient norm was quiet up to the very record before the NaN.

What it detects: a NaN that comes out of calm: no rise of gradient norm or loss in the last records before it.

Why it matters: the optimizer did nothing wrong. One batch, or one operation in a layer, made the number, and a lower
learning rate will not help.

How it decides: the norms before the onset are known, and none of the last ten stands above its past by what NAN002
asks. It is `backward` when the norm was bad before the loss, `forward` when the loss was bad first or at once.

What else looks like this: a coarse log. When more than ten steps lie between two records, a rise can hide between
them, and the confidence is low.

What to do next: dump and inspect the batch of the first bad step; run that step with anomaly detection on; look for
logs, divisions and roots at zero.

References: PyTorch documentation, "Automatic differentiation package", anomaly detection.

Example:
    ```metrics
    step: 1..9
    grad_norm: 1.00 1.04 0.97 1.02 0.99 1.03 1.01 - -
    loss: -*4 3.8 3.7 3.7 nan nan
    ```
    => NAN003 error confidence=medium step=8 step_lo=7 cause=data_or_numerics z=0.002229 ratio=1.000
Not this:
    ```metrics
    seq: 5..9
    step: 5..9
    loss: 3.8 3.7 3.7 nan nan
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.nan.kind import Alarm, kind_of
from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.rules.kit import Findings, Run, at_step, number, proof, rule


@rule("nan", needs=("metrics", "events", "checkpoints"), config=Alarm, severity="error", cause="data_or_numerics")
def flat_gradnorm(run: Run) -> Findings:
    """Find a NaN that nothing announced."""
    found = nan_onset(run)
    if found is None or found.status is not Status.FAILED:
        return
    kind = kind_of(run, found)
    if kind.name != "data_or_numerics" or kind.quiet is None:
        return
    quiet = kind.quiet
    where = "backward" if found.metric == "grad_norm" else "forward"
    yield flat_gradnorm.finding(
        f"the run stopped being finite at {at_step(found.step)} although the gradient norm was steady",
        f"{number(quiet.row['value'])} at {at_step(quiet.step)} is {quiet.z:+.1f} robust deviations from"
        f" its past; the number was made in the {where} pass",
        proof(*found.evidence(), quiet.row),
        found.onset,
        confidence=kind.confidence,
        numbers={"z": quiet.z, "ratio": quiet.ratio, "pass": where},
    )
