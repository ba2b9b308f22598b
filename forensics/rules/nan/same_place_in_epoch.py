"""NAN015 same-place-in-epoch: values went bad at the same place of more than one epoch.

What it detects: stretches of bad losses that begin at the same fraction of different epochs, with finite ones between.

Why it matters: a model that is sound before and after, and bad whenever one place of the data comes by, has met a bad
sample and not a bad rate.

How it decides: the epoch of each bad stretch's first record is compared by its fraction. At least two epochs must
share it within half a record's share of an epoch. It is a warning, and explains the run, where training went on finite
and most bad stretches begin there.

What else looks like this: an evaluation or a reset at each epoch's begin; places at the very begin of an epoch are
left out, and so is a shuffled order, where a sample never comes back to its place.

What to do next: print the batch at that place of the data and look at its samples.

References: PyTorch documentation, "Reproducibility", on the order of data.

Example:
    ```metrics
    step: 1..10
    epoch: 0.25..2.5/0.25
    loss: 3.0 2.9 nan 2.8 2.7 2.6 nan 2.5 2.4 2.4
    ```
    => NAN015 warning confidence=medium step=3 step_lo=2 cause=bad_sample epochs=2 place_in_epoch=0.7500
Not this:
    ```metrics
    step: 1..7
    epoch: 0.25..1.75/0.25
    loss: 3.0 nan 2.9 2.8 nan 2.6 2.5
    ```
    => nothing
"""

from __future__ import annotations

import numpy as np
import polars as pl

from forensics.analyses.epoch_places import same_place
from forensics.analyses.nan.onset import NanOnset, nan_onset
from forensics.analyses.nan.series import Status
from forensics.rules.kit import EvidenceRole, Findings, Run, at_step, metric_evidence, onset_at, proof, rule

_SHOWN = 4
_WENT_ON = (Status.INTERMITTENT, Status.TRANSIENT)


@rule("nan", needs=("metrics", "events"), confidence="medium", cause="bad_sample")
def same_place_in_epoch(run: Run) -> Findings:
    """Find bad values that come back at one place of the data."""
    found = nan_onset(run)
    if found is None or "epoch" not in found.rows.columns:
        return
    row = found.first.row
    losses = found.rows.filter(
        (pl.col("role") == "loss") & (pl.col("source") == row["source"]) & pl.col("epoch").is_finite()
    ).sort("seq")
    epochs, begins = losses["epoch"].to_numpy(), _begins(losses)
    again = losses[same_place(epochs, begins)]
    if again.is_empty():
        return
    first, leads = again.row(0, named=True), _leads(found, again, len(begins))
    others = tuple(metric_evidence(r, EvidenceRole.RELATED) for r in again[1:_SHOWN].iter_rows(named=True))
    yield same_place_in_epoch.finding(
        f"values stop being finite at the same place of {again.height} epochs, first at {at_step(first['at'])}",
        "finite ones are between them, so the data come back",
        proof(first, *others),
        onset_at(first, found.clean_step if leads else None),
        severity="warning" if leads else "info",
        causal="root" if leads else "context",
        numbers={"epochs": again.height, "place_in_epoch": round(first["epoch"] % 1, 4)},
    )


def _leads(found: NanOnset, again: pl.DataFrame, stretches: int) -> bool:
    """Whether it explains all that is bad: the run went on finite, and most bad stretches begin at that place."""
    return found.status in _WENT_ON and 2 * again.height > stretches


def _begins(losses: pl.DataFrame) -> np.ndarray:
    """Positions at which the losses turn bad."""
    bad = losses["bad"]
    return (bad & ~bad.shift(1, fill_value=True)).arg_true().to_numpy()
