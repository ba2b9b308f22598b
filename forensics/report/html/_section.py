"""A part of a run's page, and the walk over `_sections/` that finds the parts: a new file adds parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal

from msgspec import Struct

from forensics.figure import Chart, Figure, Heat
from forensics.model import Finding, Report
from forensics.registry import values
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._figures import Place, drawing_of, figure

#: A map of more ranks is drawn by itself.
_FEW_ROWS = 12
#: The place of a part: above all, beside the chart that decides, in two columns below both, or below these.
Column = Literal["head", "answer", "picture", "why", "doubts", "rest"]


class Shown(Struct, frozen=True):
    """One run on the page: `prefix` makes its ids unique, `level` is the heading of its verdict."""

    report: Report
    prefix: str = ""
    level: str = "h1"

    def figures(self, place: Place) -> list[Figure]:
        """Give the figures of one section, but for those that decide."""
        above = [id(f) for f in self.deciding]
        return [f for f in self.report.figures if id(f) not in above and self._place(f) == place]

    @property
    def deciding(self) -> tuple[Figure, ...]:
        """The figure that shows the verdict best, and one beside it: a chart of the lead finding, or a map of ranks."""
        drawn = [f for f in self.report.figures if self._place(f) == "charts"]
        lead = say.lead(self.report)
        beside = [f for f in drawn[1:] if _goes_with(f, drawn[0], lead)]
        return (*drawn[:1], *beside[:1])

    @property
    def core(self) -> tuple[Figure, ...]:
        """The charts that decide, and the time line."""
        kept = [id(f) for f in self.deciding]
        return tuple(f for f in self.report.figures if id(f) in kept or self._place(f) == "timeline")

    def drawn(self, every: Sequence[Figure]) -> list[Markup]:
        return [figure(f, f"{self.prefix}{f.key}") for f in every]

    @staticmethod
    def _place(shown: Figure) -> Place | None:
        drawing = drawing_of(shown)
        return drawing.place if drawing is not None else None


def _goes_with(other: Figure, first: Figure, lead: Finding | None) -> bool:
    """Whether a second figure tells more of the same and leaves both above the fold."""
    if isinstance(first, Chart):
        over_same = isinstance(other, Chart) and other.x_label == first.x_label
        return over_same and lead is not None and lead.rule in other.rules
    few = len(first.rows) <= _FEW_ROWS if isinstance(first, Heat) else True
    return isinstance(other, Heat) and len(other.rows) <= _FEW_ROWS and few


class Section(Struct, frozen=True):
    """A part of the page: `make(shown)` gives its markup, empty where the run has nothing of it.

    `order` is its place in its `column`. `brief` parts are shown of every run, the others only where a page of several
    runs has room.
    """

    order: int
    make: Callable[[Shown], Markup]
    brief: bool = False
    column: Column = "rest"


@cache
def sections() -> tuple[Section, ...]:
    """Every part, in reading order."""
    return tuple(sorted(values("forensics.report.html._sections", "SECTIONS", Section), key=lambda s: s.order))


def laid_out(shown: Shown, *, brief: bool = False) -> Markup:
    """Lay out a run: the head, the answer beside the chart that decides, reasons beside doubts, then the rest."""

    def column(name: Column) -> Markup:
        return join(s.make(shown) for s in sections() if s.column == name and (s.brief or not brief))

    above = column("head"), _beside(column("answer"), column("picture"))
    return join(above, _beside(column("why"), column("doubts")), column("rest"))


def _beside(left: Markup, right: Markup) -> Markup:
    if not left or not right:
        return join(left, right)
    return tag("div", tag("div", left), tag("div", right), class_="columns")
