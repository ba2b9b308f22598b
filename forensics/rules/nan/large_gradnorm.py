"""NAN013 large-gradnorm: the gradient norm was beyond any usual size shortly before the run went non-finite.

What it detects: a finite gradient norm above 100 among the last records before the first bad one.

Why it matters: a norm of that size points to a rate, an initialisation or a missing clip, whether or not it rose
suddenly; a run that starts there has no calm past to compare with.

How it decides: the greatest finite gradient norm of the last 50 records of the same source and attempt before the
onset, against the limit.

What else looks like this: norms that are summed over samples or tokens, and not averaged, are large by themselves; so
this only adds to a failure that is shown by other evidence.

What to do next: clip the global norm at 1.0; look at the printed norm before clipping.

References: axolotl documentation, "Training stability": above 100 is unstable.

Example:
    ```metrics
    step: 1..4
    loss: 9.1 9.4 nan nan
    grad_norm: 412.0 530.0 nan nan
    ```
    => NAN013 info confidence=medium step=2 cause=large_gradnorm causal=context grad_norm=530.0 records=2
Not this:
    ```metrics seq,step,name,value
    1,1,loss,9.1
    1,1,grad_norm,412.0
    2,2,loss,8.7
    2,2,grad_norm,530.0
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Findings, Run, at_step, number, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class Limit:
    """The norm that is too large, and the records before the onset that are looked at."""

    norm: float = range_of("grad_norm_unstable").hi
    records: int = 50


@rule(
    "nan",
    needs=("metrics", "events"),
    config=Limit,
    severity="info",
    confidence="medium",
    cause="large_gradnorm",
    causal="context",
)
def large_gradnorm(run: Run, cfg: Limit) -> Findings:
    """Find the greatest gradient norm before the run went non-finite."""
    found = nan_onset(run)
    if found is None or found.status is not Status.FAILED:
        return
    row = found.first.row
    past = found.rows.filter(
        (pl.col("role") == "grad_norm")
        & (pl.col("source") == row["source"])
        & pl.col("value").is_finite()
        & (pl.col("at") < found.step if found.step is not None else pl.lit(value=True))
    )
    past = past.filter(pl.col("attempt") == pl.col("attempt").max()).sort("seq").tail(cfg.records)
    top = past.sort("value", "seq").tail(1)
    if not top.height or top["value"].item() <= cfg.norm:
        return
    worst = top.row(0, named=True)
    yield large_gradnorm.finding(
        f"the gradient norm was {number(worst['value'])} at {at_step(worst['at'])}, before the first bad value",
        f"above {number(cfg.norm)}, where training is called unstable",
        proof(worst, *found.evidence()[:1]),
        onset_at(worst),
        numbers={"grad_norm": worst["value"], "records": past.height},
    )
