"""The places that a chart over steps marks: onset, last clean step, checkpoints."""

from __future__ import annotations

import polars as pl

from forensics.figure import Mark
from forensics.model import Report
from forensics.nan_origin import origin
from forensics.signals.checkpoints import known
from forensics.store.run import Run

_CHECKPOINTS = 12


def step_marks(run: Run, report: Report) -> tuple[Mark, ...]:
    """Mark the onset, the last clean checkpoint and the checkpoints nearest to the onset."""
    verdict = report.verdict
    found: list[Mark] = []
    onset = verdict.onset.step
    if onset is not None:
        found.append(Mark(float(onset), f"onset, step {onset}", "onset"))
    clean = _clean_checkpoint(run, report)
    if clean is not None:
        found.append(Mark(float(clean), f"last clean checkpoint, step {clean}", "clean"))
    for step in _near(known(run.scan("checkpoints")).filter(~pl.col("removed"))["step"].to_list(), onset):
        if step != clean:
            found.append(Mark(float(step), f"checkpoint, step {step}", "checkpoint"))
    return tuple(found)


def _clean_checkpoint(run: Run, report: Report) -> int | None:
    if not any(f.shape.value == "nan" for f in report.findings):
        return None
    best = origin(run).last_clean_checkpoint
    return best.step if best is not None else None


def _near(steps: list[int], onset: int | None) -> list[int]:
    if onset is not None:
        steps = sorted(steps, key=lambda step: abs(step - onset))
    return sorted(steps[:_CHECKPOINTS] if onset is not None else steps[-_CHECKPOINTS:])
