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

import polars as pl

from forensics.knowledge.errors import by_id, telling
from forensics.rules.kit import Findings, Run, event_evidence, onset_at, proof, rule


@rule("learning", needs=("events",), severity="warning", confidence="medium", cause="not_wired")
def wiring_reported(run: Run) -> Findings:
    """Find the first line of each kind."""
    rows = run.scan("events").filter(pl.col("code").is_in(telling("not_wired"))).sort("source", "seq").collect()
    for row in rows.unique("code", keep="first", maintain_order=True).iter_rows(named=True):
        yield wiring_reported.finding(
            by_id()[row["code"]].words, "the program printed so itself", proof(event_evidence(row)), onset_at(row)
        )
