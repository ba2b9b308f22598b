"""What a part of a run's page is, and the walk over `_sections/` that finds the parts: one new file is one new part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from forensics.model import Report
from forensics.registry import values
from forensics.report.html._drawing import Place, drawing_of
from forensics.report.html._elements import Markup
from forensics.report.html._figures import figure


@dataclass(frozen=True, slots=True)
class Shown:
    """One run on the page: `prefix` makes its ids unique, `level` is the heading of its verdict."""

    report: Report
    prefix: str = ""
    level: str = "h1"

    def figures(self, place: Place) -> list[Markup]:
        """Lay out the figures that stand in one section."""
        own = [f for f in self.report.figures if (d := drawing_of(f)) is not None and d.place == place]
        return [figure(f, f"{self.prefix}{f.key}") for f in own]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: `make(shown)` gives its markup, empty where the run has nothing of it; `order` its place.

    `brief` parts are shown of every run, the others only where a page of several runs has room.
    """

    order: int
    make: Callable[[Shown], Markup]
    brief: bool = False


@cache
def sections() -> tuple[Section, ...]:
    """Every part there is, in the order in which they are read."""
    return tuple(sorted(values("forensics.report.html._sections", "SECTION", Section), key=lambda s: s.order))
