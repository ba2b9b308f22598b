"""LRN018 wiring-reported: the log says that nothing is trainable, or that one batch could not be learned.

What it detects: the line by which adapter libraries count trainable parameters when that count is zero, and the line
of a wiring test that failed.

Why it matters: both say before the first step that the run cannot learn.

How it decides: by the line alone; later training lines do not clear it, as training goes on without an error.

What else looks like this: a count printed for a reference or an evaluation model, which is frozen by design.

What to do next: print which parameters require gradients; check the names of the adapter's target modules; overfit a
single batch until its loss is nearly zero, before anything else is tuned.

References: Hugging Face PEFT documentation, `print_trainable_parameters`.

Example:
    ```events code,text
    no-trainable-params,trainable params: 0 || all params: 1234567890 || trainable%: 0.0
    ```
    => LRN018 warning confidence=medium cause=not_wired
Not this:
    ```events code,text
    success,Training finished successfully.
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.case.evidence import event_evidence
from forensics.knowledge.errors import by_id, telling
from forensics.model import Confidence, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.learning.no_decrease import NEXT
from forensics.store.run import Run


@rule(shape=Shape.LEARNING, needs=("events",))
def wiring_reported(run: Run) -> Iterator[Finding]:
    """Find the first line of each kind."""
    rows = run.scan("events").filter(pl.col("code").is_in(telling("not_wired"))).sort("source", "seq").collect()
    for row in rows.unique("code", keep="first", maintain_order=True).iter_rows(named=True):
        yield wiring_reported.finding(
            severity=Severity.WARNING,
            confidence=Confidence.MEDIUM,
            title=by_id()[row["code"]].words,
            because="the program printed so itself",
            evidence=(event_evidence(row),),
            onset=Onset(step=row["step"], t_ns=row["t_ns"], rank=row["rank"]),
            cause="not_wired",
            likely=("no module matches the adapter's targets", "requires_grad switched off after wrapping"),
            next=NEXT,
        )
