"""The checkpoint from which a failed run can go on: the last whole one that its failure has not touched."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from forensics.analyses.nan.origin import NO_STEP, JudgedCheckpoint, origin
from forensics.case.checkpoints import fates, known
from forensics.case.epochs import epoch_scale
from forensics.knowledge.causes import is_kind
from forensics.knowledge.doing import is_unsaved
from forensics.model import Checkpoint, Finding, Shape, Verdict
from forensics.store.run import Run

#: An evaluation judges a checkpoint and harms none, so there is none to go back to.
_HARMLESS = (None, Shape.BAD_EVAL)


def last_clean(run: Run, verdict: Verdict, findings: Sequence[Finding]) -> Checkpoint | None:
    """Give the last whole checkpoint before a failure; None where there is none, or where the run need not go back.

    A NaN has its own judgement (`nan-origin`). Wrong learning is in every checkpoint from its onset on; a crash, a
    hang, a stop or a count that began anew is in none, so the last one serves, but for one that a rank was still
    writing.
    """
    if verdict.shape in _HARMLESS:
        return None
    if verdict.shape is Shape.NAN:
        return origin(run).last_clean_checkpoint
    usable, begin = fates(known(run)).filter(pl.col("state").is_null()), _begin(run, verdict, findings)
    is_touched = _is_touched(verdict)
    if is_touched and begin is None:
        return None
    if begin is not None and (is_touched or is_unsaved(verdict.cause or "")):
        usable = usable.filter(pl.col("step") < begin)
    return Checkpoint(int(usable["step"][-1]), usable["path"][-1]) if usable.height else None


def _is_touched(verdict: Verdict) -> bool:
    """Whether what went wrong is in every checkpoint from its onset on."""
    return verdict.shape is Shape.LEARNING and not is_kind(verdict.cause or "", "of_counts")


def _begin(run: Run, verdict: Verdict, findings: Sequence[Finding]) -> int | None:
    """Give the step of the onset: by the epoch of the record that proves it where it numbers none."""
    if verdict.onset.step is not None or verdict.lead is None:
        return verdict.onset.step
    proof, scale = findings[verdict.lead].evidence[0], epoch_scale(run)
    if scale is None or proof.locator.line is None:
        return None
    own = (pl.col("source") == proof.source) & (pl.col("line") == proof.locator.line)
    epochs = run.scan("metrics").filter(own & pl.col("epoch").is_finite()).select(pl.col("epoch").max()).collect()
    epoch = epochs.item()
    return None if epoch is None else scale.first_of(epoch)


def why_none(run: Run, verdict: Verdict, findings: Sequence[Finding]) -> str:
    """Name the fault of the last checkpoint of a run without a usable one; empty without any checkpoint."""
    if verdict.shape in _HARMLESS:
        return ""
    if verdict.shape is Shape.NAN:
        return why_unusable(origin(run).checkpoints)
    last = fates(known(run)).tail(1)
    if last.is_empty():
        return ""
    step, state, why = last.select("step", "state", "why").row(0)
    if state is not None:
        return _said(step, state, why)
    if _is_touched(verdict) and _begin(run, verdict, findings) is None:
        return _said(step, "unknown", NO_STEP)
    unsaved = is_unsaved(verdict.cause or "")
    return f"step {step} was " + ("still being saved" if unsaved else "saved after the first bad one")


def why_unusable(checkpoints: Sequence[JudgedCheckpoint]) -> str:
    """Name the fault of the last of some checkpoints without a clean one; empty without any."""
    last = checkpoints[-1] if checkpoints else None
    return _said(last.step, last.state, last.why) if last is not None else ""


def _said(step: int, state: str, why: str) -> str:
    words = {"unknown": "nobody knows whether the one of step {} is clean", "dirty": "the one of step {} is tainted"}
    return f"{words.get(state, 'step {} is ' + state).format(step)} ({why})"
