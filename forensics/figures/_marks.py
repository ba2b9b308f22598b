"""The places that a chart over steps marks: onset, last clean step, checkpoints."""

from __future__ import annotations

import polars as pl

from forensics.case.checkpoints import known
from forensics.figure import Mark
from forensics.figures._ticks import time_of_day
from forensics.model import Report
from forensics.store.run import Run

_CHECKPOINTS = 12
#: How far an onset may be after the last record, as a share of the axis.
_BEYOND = 0.25


def step_marks(run: Run, report: Report) -> tuple[Mark, ...]:
    """Mark the onset, the checkpoint to go back to and the checkpoints nearest to the onset."""
    verdict = report.verdict
    found: list[Mark] = []
    onset = verdict.onset.step
    if onset is not None:
        found.append(Mark(float(onset), f"onset, step {onset}", "onset"))
    clean = verdict.checkpoint.step if verdict.checkpoint is not None else None
    if clean is not None:
        found.append(Mark(float(clean), f"last clean checkpoint {clean}", "clean"))
    near = _near(known(run).filter(~pl.col("removed"))["step"].to_list(), onset)
    found += [Mark(float(step), f"checkpoint {step}", "checkpoint") for step in near if step != clean]
    return tuple(found)


def _near(steps: list[int], onset: int | None) -> list[int]:
    if onset is not None:
        steps = sorted(steps, key=lambda step: abs(step - onset))
    return sorted(steps[:_CHECKPOINTS] if onset is not None else steps[-_CHECKPOINTS:])


def time_marks(report: Report, window: tuple[int, int]) -> tuple[Mark, ...]:
    """Mark the onset by its time, at its share of the way through `window`, in nanoseconds since 1970."""
    t_ns, (low, high) = report.verdict.onset.t_ns, window
    if t_ns is None or not low <= t_ns <= high or low == high:
        return ()
    return (Mark((t_ns - low) / (high - low), f"onset, {time_of_day(t_ns)}", "onset"),)


def inside(marks: tuple[Mark, ...], xs: list[float]) -> tuple[Mark, ...]:
    """Keep the marks on the axis; an onset may lie a little after the last record, which is often lost."""
    if not xs:
        return ()
    low, high = min(xs), max(xs)
    beyond = high + _BEYOND * max(high - low, 1.0)
    return tuple(m for m in marks if low <= m.at <= (beyond if m.role == "onset" else high))
