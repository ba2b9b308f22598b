"""From the tables of a run to the figures of its page: one file for each kind of figure."""

from __future__ import annotations

from forensics.figure import Figure
from forensics.figures._thin import shrunk
from forensics.figures.curves import curves
from forensics.figures.kernels import kernels
from forensics.figures.lanes import lanes
from forensics.figures.memory import memory
from forensics.figures.pace import pace
from forensics.figures.progress import progress
from forensics.model import Report
from forensics.store.run import Run

__all__ = ["figures_of", "shrunk"]

_EVERY = (lanes, curves, memory, pace, progress, kernels)


def figures_of(run: Run, report: Report) -> tuple[Figure, ...]:
    """Build every figure that the run has data for, in the order in which they are read."""
    return tuple(figure for make in _EVERY for figure in make(run, report))
