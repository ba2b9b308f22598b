"""What a drawing of a type of figure is, and the walk over `_drawings/` that finds it: one new file is one new type."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from msgspec import Struct

from forensics.figure import Figure
from forensics.registry import values
from forensics.report.html._elements import Markup

#: Head and rows of the same data as a table.
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
Place = Literal["charts", "timeline", "differences"]


class Live(Struct, frozen=True):
    """A figure for Plotly: its traces and layout as plain values, and how many points they hold of how many."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    points: int
    note: str = ""


class Drawing(Struct, frozen=True):
    """How figures of the type `kind` are drawn, and in which section of the page they stand.

    `draw(figure, ident)` gives the drawing, `below(figure)` what stands under it (a legend), `table(figure)` the same
    as a table, where it is not told below; `live(figure, most)` gives it for Plotly with at most so many points.
    """

    kind: type
    draw: Callable[[Any, str], Markup]
    below: Callable[[Any], Markup] | None = None
    table: Callable[[Any], Table] | None = None
    live: Callable[[Any, int], Live] | None = None
    place: Place = "charts"


@cache
def drawings() -> tuple[Drawing, ...]:
    """Every drawing there is."""
    return values("forensics.report.html._drawings", "DRAWING", Drawing)


def drawing_of(figure: Figure) -> Drawing | None:
    """Give how a figure is drawn; None for a type that nothing draws."""
    return next((d for d in drawings() if isinstance(figure, d.kind)), None)
