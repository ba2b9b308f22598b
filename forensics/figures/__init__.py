"""From the tables of a run to the figures of its page: one file for each kind, with a value `FIGURES`."""

from __future__ import annotations

from forensics.figure import Figure
from forensics.figures._thin import note_of, shrunk
from forensics.figures._ticks import MOST_TICKS, powers, rounds
from forensics.figures.kind import kinds
from forensics.model import Report
from forensics.store.run import Run

__all__ = ["MOST_TICKS", "figures_of", "note_of", "powers", "rounds", "shrunk"]


def figures_of(run: Run, report: Report) -> tuple[Figure, ...]:
    """Build every figure that the run has data for: those that decide its shape first, else in the order of kinds."""
    ordered = sorted(kinds(), key=lambda kind: report.verdict.shape not in kind.decides)
    return tuple(figure for kind in ordered for figure in kind.make(run, report))
