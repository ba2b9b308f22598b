"""What a kind of figure is, and the walk over this folder that finds them: one new file is one new kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from msgspec import Struct

from forensics.figure import Figure
from forensics.model import Report, Shape
from forensics.registry import values
from forensics.store.run import Run


class FigureKind(Struct, frozen=True):
    """A way to draw a run: `make(run, report)` gives figures, none where the run has nothing of it; `order` its place.

    Keys of figures are unique in a run; baselines that were given are `run.bases`. Where the verdict's shape is one of
    `decides`, its figures come before all others.
    """

    order: int
    make: Callable[[Run, Report], Iterable[Figure]]
    decides: frozenset[Shape] = frozenset()


def rules_of(report: Report, shape: Shape) -> tuple[str, ...]:
    """Give the rules of a shape that found something."""
    return tuple(sorted({finding.rule for finding in report.findings if finding.shape is shape}))


@cache
def kinds() -> tuple[FigureKind, ...]:
    """Every kind there is, in the order in which their figures are read."""
    return tuple(sorted(values("forensics.figures", "FIGURES", FigureKind), key=lambda kind: kind.order))
