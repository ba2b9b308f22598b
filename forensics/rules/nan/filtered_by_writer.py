"""NAN006 nan-filtered-by-writer: the logger hides a NaN loss behind a number.

What it detects: a gradient norm that is NaN while the loss beside it is finite and then exactly zero; a loss that
drops to exactly zero for good; a value that the writer itself marked as replaced.

Why it matters: the loss curve looks better than before, and the run goes on for hours with dead weights. The first
NaN lies in the window whose gradient norm is NaN, although its loss is lower than the one before.

How it decides: the first bad metric is the gradient norm and the loss of the same source ends on zero without ever
being NaN; where no gradient norm is printed, three or more zeros after a loss well above zero, in a run that logs no
reward; that alone is no certainty, unless the trainer is known to print a number for NaN.

What else looks like this: reinforcement learning, where a loss of zero with a gradient norm of zero is a batch without
advantage; a loss that fell to zero little by little.

What to do next: let the log show NaN as it is (`logging_nan_inf_filter=False` in the Trainer of Hugging Face); restart
from a checkpoint before the window.

References: Transformers documentation, `TrainingArguments.logging_nan_inf_filter`.

Example:
    ```metrics
    step: 10..40/10
    loss: 1.92 1.84 0.97 0.0
    grad_norm: 1.3 1.2 nan nan
    ```
    => NAN006 error confidence=high step=30 step_lo=20 cause=filtered_by_writer
Not this:
    ```metrics
    step: 10..40/10
    loss: 0.12 0.0 -0.31 0.0
    grad_norm: 1.3 0.0 1.1 0.0
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.nan.kind import hidden
from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.case.trainers import trainers_by_source
from forensics.rules.kit import Findings, Run, at_step, rule


@rule("nan", needs=("metrics", "events", "sources"), severity="error", cause="filtered_by_writer")
def filtered_by_writer(run: Run) -> Findings:
    """Find a NaN that only the gradient norm, or a row of zeros, betrays."""
    found = nan_onset(run)
    if found is None or found.status is not Status.FAILED or not hidden(found):
        return
    source = str(found.first.row["source"])
    known = next((one for one in trainers_by_source(run).get(source, ()) if one.nan.prints == "number"), None)
    zeros = found.first.role == "zero"
    yield filtered_by_writer.finding(
        f"the logger hides a NaN loss from {at_step(found.step)} on",
        "the printed loss plunges to exactly zero and stays there"
        if zeros
        else "the printed loss is finite and ends on exactly zero while the gradients are not finite",
        found.evidence(),
        found.onset,
        confidence="medium" if zeros and known is None else "high",
        next=("forensics nan-origin RUN",),
    )
