"""The checkpoint from which a failed run can go on: the last whole one that its failure has not touched."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from forensics.analyses.nan.origin import JudgedCheckpoint, origin
from forensics.case.checkpoints import fates, known
from forensics.knowledge.causes import is_kind
from forensics.knowledge.doing import is_unsaved
from forensics.model import Checkpoint, Onset, Shape
from forensics.store.run import Run

#: An evaluation judges a checkpoint and harms none, so there is none to go back to.
_HARMLESS = (None, Shape.BAD_EVAL)


def last_clean(run: Run, shape: Shape | None, onset: Onset, cause: str | None = None) -> Checkpoint | None:
    """Give the last whole checkpoint before a failure; None where there is none, or where the run need not go back.

    A NaN has its own judgement (`nan-origin`). Wrong learning is in every checkpoint from its onset on; a crash, a
    hang, a stop or a count that began anew is in none, so the last one serves, but for one that a rank was still
    writing.
    """
    if shape in _HARMLESS:
        return None
    if shape is Shape.NAN:
        return origin(run).last_clean_checkpoint
    usable = fates(known(run)).filter(pl.col("state").is_null())
    is_touched = shape is Shape.LEARNING and not is_kind(cause or "", "of_counts")
    if onset.step is not None and (is_touched or is_unsaved(cause or "")):
        usable = usable.filter(pl.col("step") < onset.step)
    return Checkpoint(int(usable["step"][-1]), usable["path"][-1]) if usable.height else None


def why_none(run: Run, shape: Shape | None, cause: str | None = None) -> str:
    """Name the fault of the last checkpoint of a run without a usable one; empty without any checkpoint."""
    if shape in _HARMLESS:
        return ""
    if shape is Shape.NAN:
        return why_unusable(origin(run).checkpoints)
    last = fates(known(run)).tail(1)
    if last.is_empty():
        return ""
    step, state, why = last.select("step", "state", "why").row(0)
    if state is not None:
        return _said(step, state, why)
    return f"step {step} was " + ("still being saved" if is_unsaved(cause or "") else "saved after the first bad one")


def why_unusable(checkpoints: Sequence[JudgedCheckpoint]) -> str:
    """Name the fault of the last of some checkpoints without a clean one; empty without any."""
    last = checkpoints[-1] if checkpoints else None
    return _said(last.step, last.state, last.why) if last is not None else ""


def _said(step: int, state: str, why: str) -> str:
    words = {"unknown": "nobody knows whether the one of step {} is clean", "dirty": "the one of step {} is tainted"}
    return f"{words.get(state, 'step {} is ' + state).format(step)} ({why})"
