"""NAN005 nan-loss-scale-collapse: the fp16 loss scale fell to nothing, or updates are skipped in a storm.

What it detects: after warm-up, a dynamic loss scale that falls again and again without rising, ends at its floor, or a
share of skipped updates that no healthy run has.

Why it matters: every update is skipped, so the model stands still while steps, times and checkpoints look normal. No
NaN need ever be printed.

How it decides: the first `warmup` steps are calibration and are ignored. Then: a fall by `fall` to `floor` or less
that lasts `at_floor` records; or `burst` falls within `burst_records` of each other up to the end; or more than
`skip_share` of the updates skipped, up to the end.

What else looks like this: the halvings at the start from 65536 or more; single skips every thousand steps, which are
how the scaler looks for the range; a static scale of one, as bf16 runs print it.

What to do next: use bf16; else lower the learning rate, raise the scale window, and go back to a checkpoint before the
scale began to fall.

References: Micikevicius et al., "Mixed Precision Training" (2018), section 3.2, on dynamic loss scaling.

Example:
    ```metrics
    step: 100..190/10
    loss_scale: 65536 65536 8192 1024 128 8 1*4
    ```
    => NAN005 error confidence=medium step=120 cause=loss_scale_collapse
Not this:
    ```metrics
    step: 1..6 1000 2000 3000
    loss_scale: 65536 32768 16384 8192 4096 2048 4096 2048 4096
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import replace

from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.scale import ScaleLimits, collapse_of
from forensics.analyses.nan.series import Status
from forensics.rules.kit import Findings, Onset, Run, at_step, rule


@rule("nan", needs=("metrics", "events"), config=ScaleLimits, cause="loss_scale_collapse")
def loss_scale_collapse(run: Run) -> Findings:
    """Find where the loss scale began to fall for good."""
    collapse = collapse_of(run)
    if collapse is None:
        return
    found = nan_onset(run)
    lost = found if found is not None and found.status is Status.FAILED else None
    first = collapse.evidence[0]
    onset = Onset(step=collapse.step, t_ns=first.t_ns, rank=first.rank)
    if lost is not None and lost.step is not None and (collapse.step is None or lost.step <= collapse.step):
        onset = lost.onset
    elif lost is not None:
        onset = replace(onset, step_lo=lost.clean_step if (lost.clean_step or 0) < (onset.step or 0) else None)
    consequence = lost is not None and onset is lost.onset and collapse.step != lost.step
    yield loss_scale_collapse.finding(
        f"{collapse.words}, from {at_step(collapse.step)} on",
        "after the first steps a healthy scale falls rarely and rises again; here no update gets through",
        collapse.evidence,
        onset,
        severity="warning" if consequence else "error",
        confidence="high" if lost is not None else "medium",
        numbers={} if collapse.share is None else {"skipped_share": collapse.share},
        next=("forensics nan-origin RUN",),
    )
