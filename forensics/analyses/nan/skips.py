"""What says that the update of a bad step was skipped, so that its weights are those of the step before."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from forensics.analyses.nan.loss_scale import overflows
from forensics.analyses.nan.onset import NanOnset
from forensics.case.evidence import event_evidence
from forensics.case.trainers import trainers_by_source
from forensics.model import Evidence, EvidenceRole
from forensics.store.run import Run

#: A line about a step follows its record, or comes before it, by this many lines at most.
_BESIDE = 5


class Skip(Struct, frozen=True):
    """Why the update of a bad step was not made: words for a sentence, and the line that says it where one does."""

    words: str
    line: Evidence | None = None


def skip_of(run: Run, found: NanOnset) -> Skip | None:
    """Tell from a line beside the first bad record, else from the trainer; None where nothing says so."""
    row = found.first.row
    said = overflows(run.scan("events").filter(pl.col("source") == row["source"]))
    near = said.filter((pl.col("line") - (row["line"] or 0)).abs() <= _BESIDE) if row["line"] is not None else said
    if not near.is_empty():
        line = event_evidence(near.row(0, named=True), EvidenceRole.RELATED)
        return Skip("the log says that its update was skipped", line)
    what = "gradient" if found.first.role == "grad_norm" else "loss"
    known = next((one for one in trainers_by_source(run).get(str(row["source"]), ()) if one.nan.skips == what), None)
    return None if known is None else Skip(f"{known.title} skips an update whose {what} is not finite")
