"""From the tables of a run to the figures of its page: one file for each kind, with a value `FIGURES`."""

from __future__ import annotations

from forensics.figure import Figure
from forensics.figures._thin import note_of, shrunk
from forensics.figures.kind import kinds
from forensics.model import Report
from forensics.store.run import Run

__all__ = ["figures_of", "note_of", "shrunk"]


def figures_of(run: Run, report: Report) -> tuple[Figure, ...]:
    """Build every figure that the run has data for, in the order in which they are read."""
    return tuple(figure for kind in kinds() for figure in kind.make(run, report))
