"""NAN002 nan-after-gradnorm-spike: the gradient norm rose far above its past just before the NaN.

What it detects: within the last records before the first bad step, a gradient norm that stands more than `sigma` robust
standard deviations and at least `ratio` times above the median of the records before it; or, where no gradient norm
tells, such a jump of the loss itself; or a learning rate that at once was `rate_ratio` times its peak.

Why it matters: it tells an optimization blow-up from bad data. The weights were pushed out of range by their own
updates, so inspecting the batch is wasted time, and the last healthy checkpoint is the one before the rise.

How it decides: the logarithm of the norm against the median and median absolute deviation of up to `window` records
before; only the last `within` records before the onset count, and only in a run whose loss stays lost.

What else looks like this: a norm that is noisy by nature (both numbers must be passed); a rise long before the NaN.

What to do next: lower the learning rate or lengthen the warm-up, clip the global norm at 1.0, use bf16; restart from a
checkpoint before the rise.

References: Rousseeuw and Croux, "Alternatives to the Median Absolute Deviation" (1993), for the robust scale; Pascanu
et al., "On the difficulty of training recurrent neural networks" (2013), for clipping.

Example:
    ```metrics
    step: 1..10
    grad_norm: 1.00 1.04 0.97 1.02 0.99 1.03 1.01 9.40 - -
    loss: 4.1 4.0 3.9 3.9 3.8 3.7 3.7 3.9 nan nan
    ```
    => NAN002 error confidence=high step=9 step_lo=8 cause=optimization_blowup ratio=9.307 z=111.5
Example: the rate jumps, and the norm has no time to tell
    ```metrics
    step: 1..10
    grad_norm: 1.00 1.04 0.97 1.02 0.99 1.03 1.01 1.02 - -
    lr: 0.002*8 0.6*2
    loss: 4.1 4.0 3.9 3.9 3.8 3.7 3.7 3.6 3.7 nan
    ```
    => NAN002 error confidence=medium step=10 step_lo=9 cause=optimization_blowup ratio=300.0
Not this: a rate that doubles
    ```metrics
    step: 1..10
    grad_norm: 1.00 1.04 0.97 1.02 0.99 1.03 1.01 1.02 - -
    lr: 0.002*8 0.004*2
    loss: 4.1 4.0 3.9 3.9 3.8 3.7 3.7 3.6 3.7 nan
    ```
    => nothing
Not this:
    ```metrics
    step: 1..10
    grad_norm: 1.00 1.04 0.97 1.02 0.99 1.03 1.01 9.40 1.02 0.98
    loss: -*7 3.9 3.7 3.6
    ```
    => nothing
"""

from __future__ import annotations

from math import isfinite

from forensics.analyses.nan.kind import Alarm, kind_of
from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.rules.kit import Findings, Run, at_step, proof, rule


@rule("nan", needs=("metrics", "events", "checkpoints"), config=Alarm, severity="error", cause="optimization_blowup")
def gradnorm_spike(run: Run) -> Findings:
    """Find the rise that came before the first non-finite step."""
    found = nan_onset(run)
    if found is None or found.status is not Status.FAILED:
        return
    rise = kind_of(run, found).precursor
    if rise is None:
        return
    what = {"grad_norm": "gradient norm", "lr": "learning rate"}.get(rise.metric, "loss")
    above = f"{rise.z:.1f} robust standard deviations above its past" if isfinite(rise.z) else "at once above its peak"
    yield gradnorm_spike.finding(
        f"the {what} rose {rise.ratio:.3g} times at {at_step(rise.step)}, then training was not finite"
        f" from {at_step(found.step)} on",
        f"{above}, {rise.lead} records before the first bad one: an optimization blow-up, not a bad sample",
        proof(rise.row, *found.evidence()),
        found.onset,
        confidence="high" if rise.metric == "grad_norm" else "medium",
        numbers={"ratio": rise.ratio, "lead_records": rise.lead} | ({"z": rise.z} if isfinite(rise.z) else {}),
        next=("forensics nan-origin RUN",),
    )
