"""From which checkpoint a failed run can go on: the last whole one that its failure has not touched."""

from __future__ import annotations

import polars as pl

from forensics.analyses.nan.origin import origin
from forensics.case.checkpoints import known
from forensics.checkpoint import Checkpoint
from forensics.model import Onset, Shape
from forensics.store.run import Run

#: An evaluation judges a checkpoint and harms none, so there is none to go back to.
_HARMLESS = (None, Shape.BAD_EVAL)


def last_clean(run: Run, shape: Shape | None, onset: Onset) -> Checkpoint | None:
    """Give the last whole checkpoint before a failure; None where there is none, or where the run need not go back.

    A NaN has its own judgement (`nan-origin`). Wrong learning is in every checkpoint from its onset on; a crash, a hang
    or a stop is in none, so the last one serves.
    """
    if shape in _HARMLESS:
        return None
    if shape is Shape.NAN:
        return origin(run).last_clean_checkpoint
    rows = known(run)
    committed = pl.col("committed") | pl.col("on_disk") | ~pl.lit(bool(rows["committed"].any()))
    usable = rows.filter(~pl.col("removed") & ~pl.col("ruined") & pl.col("complete").fill_null(value=True) & committed)
    if shape is Shape.LEARNING and onset.step is not None:
        usable = usable.filter(pl.col("step") < onset.step)
    return Checkpoint(int(usable["step"][-1]), usable["path"][-1]) if usable.height else None
