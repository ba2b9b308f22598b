"""NAN004 nan-from-start: training was not finite from its first or second record on.

What it detects: at most one finite loss before the first bad one, in the attempt that counts.

Why it matters: nothing was learned, so no checkpoint of this attempt is worth a look. The set-up is wrong, not the
course.

How it decides: the finite losses of the same source and attempt before the onset are counted. A log whose first record
stands more than two intervals in begins in the middle, unless the attempt was resumed, and is left alone.

What else looks like this: a log that prints its first line after hundreds of steps; the bracket then begins at zero
and the confidence is medium. In an attempt that was resumed, the checkpoint may have been damaged already.

What to do next: run the forward pass of one batch in fp32; check initialisation, labels and the vocabulary's size.

References: He et al., "Delving Deep into Rectifiers" (2015), on initial scale.

Example:
    ```metrics seq,step,name,value
    1,0,loss,10.93
    2,1,loss,nan
    3,2,loss,nan
    ```
    => NAN004 error confidence=high step=1 step_lo=0 cause=from_start finite_losses_before=1
Not this:
    ```metrics
    step: 10..50/10
    loss: 4.1 3.9 3.8 nan nan
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.nan.kind import kind_of
from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.rules.kit import Findings, Run, at_step, rule


@rule("nan", needs=("metrics", "events", "checkpoints"), severity="error", cause="from_start")
def from_start(run: Run) -> Findings:
    """Find a NaN that was there from the beginning."""
    found = nan_onset(run)
    if found is None or found.status is not Status.FAILED:
        return
    kind = kind_of(run, found)
    if kind.name != "from_start":
        return
    yield from_start.finding(
        f"training was never finite: the first bad value is at {at_step(found.step)}",
        f"{found.n_before or 'no'} finite {'loss' if found.n_before == 1 else 'losses'} before it",
        found.evidence(),
        found.onset,
        confidence=kind.confidence,
        numbers={"finite_losses_before": found.n_before},
    )
