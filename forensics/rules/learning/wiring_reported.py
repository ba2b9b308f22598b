"""LRN018 wiring-reported: the log says that nothing is trainable, or that one batch could not be learned.

What it detects: the line by which adapter libraries count trainable parameters when that count is zero, the line of a
wiring test that failed, and a run on a single batch whose loss does not go to nothing.

Why it matters: both say before the first step that the run cannot learn.

How it decides: by the line alone; later training lines do not clear it, as training goes on without an error. A run
whose settings, or whose own words, say that it repeats one batch has failed its test when the last tenth of its loss is
above `left`, after `records` or more.

What else looks like this: a test that was stopped before it could end; a count printed for a reference or an evaluation
model, which is frozen by design.

What to do next: print which parameters require gradients; check the names of the adapter's target modules; overfit a
single batch until its loss is nearly zero, before anything else is tuned.

References: Hugging Face PEFT documentation, `print_trainable_parameters`.

Example:
    ```events code,text
    no-trainable-params,trainable params: 0 || all params: 1234567890 || trainable%: 0.0
    ```
    => LRN018 warning confidence=medium cause=not_wired
Example:
    ```metrics
    step: 1..20
    loss: 2.3 2.2*19
    ```
    ```facts key,value,family
    overfit_batches,1,config
    ```
    => LRN018 warning confidence=medium step=20 cause=one_batch_not_learned level=2.200
Not this:
    ```events code,text
    success,Training finished successfully.
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.case.curves.loss import curves
from forensics.case.settings import stated
from forensics.knowledge.errors import by_id, telling
from forensics.rules.kit import (
    Evidence,
    Findings,
    Run,
    event_evidence,
    fact_evidence,
    number,
    onset_at,
    proof,
    rule,
)

#: Values that turn the test of one batch on; a number is that of the batches.
_ON = ("1", "true", "yes", "on")


@dataclass(frozen=True, slots=True)
class OneBatch:
    """When one batch is learned: its loss is at most `left`, as the sanity checks of the field have it."""

    records: int = 20
    left: float = 0.1


@rule(
    "learning",
    needs=("events", "metrics", "facts"),
    config=OneBatch,
    severity="warning",
    confidence="medium",
    cause="not_wired",
)
def wiring_reported(run: Run, cfg: OneBatch) -> Findings:
    """Find the first line of each kind, else a single batch that was not learned."""
    rows = run.scan("events").filter(pl.col("code").is_in(telling("not_wired"))).sort("source", "seq").collect()
    for row in rows.unique("code", keep="first", maintain_order=True).iter_rows(named=True):
        yield wiring_reported.finding(
            by_id()[row["code"]].words, "the program printed so itself", proof(event_evidence(row)), onset_at(row)
        )
    if rows.is_empty():
        yield from _one_batch(run, cfg)


def _one_batch(run: Run, cfg: OneBatch) -> Findings:
    said = _says_one_batch(run)
    longest = max(curves(run, "loss"), key=len, default=None)
    if said is None or longest is None or len(longest) < cfg.records or longest.ends_nonfinite:
        return
    level = float(np.median(longest.values[-max(3, len(longest) // 10) :]))
    if level > cfg.left:
        yield wiring_reported.finding(
            f"a single batch is not learned by heart: {longest.raw_name} is {number(level)} in the end",
            f"{number(float(longest.values[0]))} at first; one batch repeated should reach {cfg.left:g} or less",
            proof(longest.row(-1), longest.row(0), said),
            onset_at(longest.row(-1)),
            cause="one_batch_not_learned",
            numbers={"level": level},
        )


def _says_one_batch(run: Run) -> Evidence | None:
    """What says that the run repeats one batch: a setting that is on, else a line."""
    facts = stated(run, "one_batch").filter(pl.col("said").is_in(_ON))
    if not facts.is_empty():
        return fact_evidence(facts.row(0, named=True))
    lines = run.scan("events").filter(pl.col("code").is_in(telling("one_batch"))).head(1).collect()
    return event_evidence(lines.row(0, named=True)) if not lines.is_empty() else None
