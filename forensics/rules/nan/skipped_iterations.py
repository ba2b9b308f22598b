"""NAN009 nan-loss-column-gone: iterations go on, but their lines have lost the loss.

What it detects: trainers that print the loss only when it is a positive number drop the whole column for a NaN, while
their counter of NaN iterations may stay at zero.

Why it matters: no NaN is ever printed, so a search for the word finds nothing, and a plotted curve simply ends early.

How it decides: records that used to hold a loss beside a loss scale or a skip counter hold none to the end of the
file, for at least three records.

What else looks like this: the first windows of an fp16 run, whose updates are all skipped until the scale fits.

What to do next: take the first line without a loss as the first bad step.

References: Megatron-LM, `training.py`, the function that writes the iteration line.

Example:
    ```metrics
    step: 10..50/10
    loss: 3.2 3.1 -*3
    loss_scale: 4096
    ```
    => NAN009 error confidence=medium step=30 step_lo=20 cause=loss_column_gone causal=symptom records_without_loss=3
Not this:
    ```metrics
    step: 10..40/10
    loss_scale: 65536 4096*3
    loss: - - 3.2 3.1
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.nan.onset import NanOnset, nan_onset
from forensics.analyses.nan.series import Status
from forensics.case.trainers import trainers_by_source
from forensics.rules.kit import Finding, Findings, Row, Run, at_step, metric_evidence, proof, rule


@rule("nan", needs=("metrics", "events", "sources"), severity="error", cause="loss_column_gone", causal="symptom")
def loss_column_gone(run: Run) -> Findings:
    """Find a loss column that vanished."""
    found = nan_onset(run)
    if found is not None and found.status is Status.FAILED:
        gone = [c for c in (found.first, *found.others) if c.role == "vanished"]
        if gone:
            yield _gone(run, found, gone[0].row, gone[0].n_bad)


def _gone(run: Run, found: NanOnset, row: Row, count: int) -> Finding:
    evidence = metric_evidence(row)
    known = next((one for one in trainers_by_source(run).get(str(row["source"]), ()) if one.nan.prints == "gap"), None)
    return loss_column_gone.finding(
        f"the loss column vanished at {at_step(evidence.step)} while iterations went on",
        f"{count} records follow without a loss; {known.title if known else 'the trainer'} prints it only"
        " when it is a positive number",
        proof(evidence, *found.evidence()),
        found.onset,
        confidence="high" if found.others or known is not None else "medium",
        numbers={"records_without_loss": count},
        next=("forensics nan-origin RUN",),
    )
