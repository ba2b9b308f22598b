"""A figure on the page: title, drawing and legend; folded below it a description and a table.

How a type of figure is drawn is found by a walk over `_drawings/`: one new file is one new type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from msgspec import Struct

from forensics.figure import Figure
from forensics.registry import values
from forensics.report.html._elements import Markup, join, some, tag

#: Head and rows of the same data as a table.
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
Place = Literal["charts", "timeline", "differences"]
#: Colours of kinds that the style sheet has.
COLORS = 9
#: Cells of more characters than this are wrapped.
_LONG = 40


class Live(Struct, frozen=True):
    """A figure for Plotly: its traces and layout as plain values, and how many points they hold of how many."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    points: int
    note: str = ""


class Drawing(Struct, frozen=True):
    """Draws figures of the type `kind` and names their section of the page.

    `draw(figure, ident)` gives the drawing, `below(figure)` the part under it (a legend), `table(figure)` the same
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
    return values("forensics.report.html._drawings", "DRAWING", Drawing)


def drawing_of(figure: Figure) -> Drawing | None:
    """Give how a figure is drawn; None for a type that nothing draws."""
    return next((d for d in drawings() if isinstance(figure, d.kind)), None)


def figure(shown: Figure, ident: str) -> Markup:
    """Lay out one figure; nothing for a type that nothing draws."""
    drawing = drawing_of(shown)
    if drawing is None:
        return join()
    told = [some("p", shown.caption)]
    told.append(some("p", f"Findings: {', '.join(shown.rules)}." if shown.rules else "", class_="note"))
    told.append(some("p", f"Shown: {shown.note}." if shown.note else "", class_="note"))
    if drawing.table is not None:
        told.append(data_table(*drawing.table(shown), f"{shown.title}, as a table"))
    caption = tag("figcaption", tag("b", shown.title))
    below = drawing.below(shown) if drawing.below is not None else join()
    folded = tag("details", tag("summary", "Details"), told)
    return tag("figure", caption, drawing.draw(shown, ident), below, folded, id=ident)


def data_table(head: tuple[str, ...], rows: list[tuple[str, ...]], name: str, *, sized: bool = True) -> Markup:
    """Give a table in a box that scrolls by itself, by keyboard too; long cells of a `sized` one are wrapped."""
    top = tag("tr", [tag("th", cell, scope="col") for cell in head])
    body = [
        tag("tr", [tag("td", cell, class_=sized and ("long" if len(cell) > _LONG else "short")) for cell in row])
        for row in rows
    ]
    table = tag("table", tag("thead", top), tag("tbody", body))
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=name)


def swatch(inside: Markup) -> Markup:
    """Give the small drawing that a legend shows before a name."""
    return tag("svg", inside, class_="swatch", viewBox="0 0 22 12", aria_hidden="true")


def patch(kind: int) -> Markup:
    """Give the patch of colour that a legend shows before the name of a kind."""
    return swatch(tag("rect", class_=f"part p{kind % COLORS}", x=0, y=1, width=22, height=10))


def svg(shown: Figure, ident: str, height: float, width: float, *parts: str | list[Markup]) -> Markup:
    """Give a drawing with its title and description, which a screen reader reads in its place."""
    told = tag("title", shown.title, id=f"{ident}-t"), tag("desc", shown.caption, id=f"{ident}-d")
    names, box = f"{ident}-t {ident}-d", f"0 0 {width:.0f} {height:.0f}"
    return tag("svg", *told, *parts, class_="chart", viewBox=box, role="img", aria_labelledby=names)
