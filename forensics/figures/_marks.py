"""The places that a chart over steps marks: onset, last clean step, checkpoints."""

from __future__ import annotations

import polars as pl

from forensics.analyses.nan.origin import origin
from forensics.case.checkpoints import known
from forensics.figure import Mark
from forensics.model import Report
from forensics.store.run import Run

_CHECKPOINTS = 12
#: Share of the axis by which an onset may lie after the last record.
_BEYOND = 0.25


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
    near = _near(known(run).filter(~pl.col("removed"))["step"].to_list(), onset)
    found += [Mark(float(step), f"checkpoint, step {step}", "checkpoint") for step in near if step != clean]
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


def inside(marks: tuple[Mark, ...], xs: list[float]) -> tuple[Mark, ...]:
    """Keep the marks on the axis; an onset may lie a little after the last record, which is often lost."""
    if not xs:
        return ()
    low, high = min(xs), max(xs)
    beyond = high + _BEYOND * max(high - low, 1.0)
    return tuple(m for m in marks if low <= m.at <= (beyond if m.role == "onset" else high))
