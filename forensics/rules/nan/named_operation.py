"""NAN011 nan-named-operation: a debug aid names the operation, layer or parameter that made the first NaN.

What it detects: anomaly mode's line about a backward function that returned NaN, and lines of hooks or guards that
name a module or parameter with a non-finite value.

Why it matters: it ends the search. The first name is the culprit; all later ones inherit the NaN.

How it decides: the first such line of the run by source and line; layers run in order, so the first one that a hook
names is where it begins. The forward call that anomaly detection prints is given with its file and line. What the name
says of the operation (a root, a logarithm, a softmax) is a table.

What else looks like this: the forward traceback that anomaly mode prints for every error of the backward pass, NaN or
not; a parameter named because its gradient overflowed in one skipped fp16 step. In a run that went on with finite
losses this is information only.

What to do next: open that operation; clamp or add an epsilon where it divides, takes a root or a logarithm.

References: PyTorch documentation, `torch.autograd.detect_anomaly`.

Example:
    ```events source,line,step,code,text,attrs
    run.log,9,41,anomaly-nan,Function 'LogBackward0' returned nan values in its 0th output.,"{""shape"":""nan""}"
    ```
    => NAN011 error confidence=high step=41 cause=named_operation name=LogBackward0
Not this:
    ```events source,line,step,code,text,attrs
    run.log,9,41,mytrainer.nan,loss is not finite,{}
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.nan.named import Named, named_operation
from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.knowledge.operations import operation_of
from forensics.rules.kit import Findings, Onset, Run, event_evidence, proof, rule


@rule("nan", needs=("events", "metrics"), confidence="high", cause="named_operation")
def operation_named(run: Run) -> Findings:
    """Find the first operation or module that a line names."""
    named = named_operation(run)
    if named is None:
        return
    found = nan_onset(run)
    if found is None and not named.says_nan:
        return
    survived = found is not None and found.status is not Status.FAILED
    row = named.row
    onset = found.onset if found is not None and not survived else Onset(row["step"], row["t_ns"], row["rank"])
    kind = operation_of(named.name)
    yield operation_named.finding(
        f"the first non-finite value comes from {named.name}" + (f", called at {named.frame}" if named.frame else ""),
        "the run's own debug aid names it" + (f"; {kind.why}" if kind is not None else ""),
        proof(event_evidence(row), *(found.evidence() if found is not None else ())),
        onset,
        severity="info" if survived else "error",
        numbers={"name": named.name},
        next=(_guard(named),),
    )


def _guard(named: Named) -> str:
    kind, place = operation_of(named.name), named.frame or named.name
    guard = kind.fix if kind is not None else "clamp its input, or add an epsilon inside log, division and square root"
    return f"Guard {place}: {guard}"
