"""NAN011 nan-named-operation: a debug aid names the operation, layer or parameter that made the first NaN.

What it detects: anomaly mode's line about a backward function that returned NaN, and lines of hooks or guards that
name a module or parameter with a non-finite value.

Why it matters: it ends the search. The first name is the culprit; all later ones inherit the NaN.

How it decides: the first such line of the run by source and line. An infinity is nearer to the root than a NaN,
because NaN follows from it.

What else looks like this: the forward traceback that anomaly mode prints for every error of the backward pass, NaN or
not; a parameter named because its gradient overflowed in one skipped fp16 step. In a run that went on with finite
losses this is information only.

What to do next: open that operation; clamp or add an epsilon where it divides, takes a root or a logarithm.

References: PyTorch documentation, `torch.autograd.detect_anomaly`.

Example:
    ```events source,line,step,code,text,attrs
    run.log,9,41,anomaly-nan,Function 'LogBackward0' returned nan values in its 0th output.,"{""shape"":""nan""}"
    ```
    => NAN011 error confidence=high step=41 cause=data_or_numerics name=LogBackward0
Not this:
    ```events source,line,step,code,text,attrs
    run.log,9,41,mytrainer.nan,loss is not finite,{}
    ```
    => nothing
"""

from __future__ import annotations

import polars as pl

from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.case.evidence import attributes
from forensics.rules.kit import Findings, Onset, Row, Run, event_evidence, proof, rule

_BACKWARD = r"Function '(\w+Backward\d*)' returned nan values"
_NAMED = r"(?i)(?:nan|inf|nan/inf|non-?finite)(?: values?| gradients?)? (?:in|at|for) ([A-Za-z_][\w]*(?:\.[\w]+)+)"


@rule("nan", needs=("events", "metrics"), confidence="high", cause="data_or_numerics")
def named_operation(run: Run) -> Findings:
    """Find the first operation or module that a line names."""
    row, name = _first(run)
    if row is None:
        return
    found = nan_onset(run)
    survived = found is not None and found.status is not Status.FAILED
    onset = found.onset if found is not None and not survived else Onset(row["step"], row["t_ns"], row["rank"])
    yield named_operation.finding(
        f"{name} made the first non-finite value",
        "the run's own debug aid names it",
        proof(event_evidence(row), *(found.evidence() if found is not None else ())),
        onset,
        severity="info" if survived else "error",
        numbers={"name": name},
    )


def _first(run: Run) -> tuple[Row | None, str]:
    text, attrs = pl.col("text").fill_null(""), pl.col("attrs").fill_null("")
    named = pl.coalesce(*(text.str.extract(p) for p in (_BACKWARD, _NAMED)))
    nan = (
        attrs.str.contains(r'"shape":\s*"nan"') | pl.col("code").str.ends_with(".nan") | (pl.col("code") == "traceback")
    )
    rows = run.scan("events").filter(nan).with_columns(named=named).filter(pl.col("named").is_not_null())
    first = rows.sort("source", "line", "seq").head(1).collect()
    if first.is_empty():
        return None, ""
    row = first.row(0, named=True)
    return row, attributes(row).get("op") or str(row["named"])
