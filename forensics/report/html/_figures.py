"""A figure on the page: title, drawing and legend; folded below what is to be seen in words and as a table."""

from __future__ import annotations

from forensics.figure import Figure
from forensics.report.html._drawing import drawing_of
from forensics.report.html._elements import Markup, join, tag

#: Cells of more characters than this are wrapped.
#: Colours of kinds that the style sheet has.
COLORS = 9
_LONG = 40


def figure(shown: Figure, ident: str) -> Markup:
    """Lay out one figure; nothing for a type that nothing draws."""
    drawing = drawing_of(shown)
    if drawing is None:
        return join()
    caption = tag("figcaption", tag("b", shown.title))
    below = [drawing.below(shown)] if drawing.below is not None else []
    told = [tag("p", shown.caption)] if shown.caption else []
    note = [tag("p", f"Shown: {shown.note}.", class_="note")] if shown.note else []
    rules = [tag("p", f"Findings: {', '.join(shown.rules)}.", class_="note")] if shown.rules else []
    name = f"{shown.title}, as a table"
    data = [data_table(*drawing.table(shown), name)] if drawing.table is not None else []
    folded = tag("details", tag("summary", "Details"), told, rules, note, data)
    return tag("figure", caption, drawing.draw(shown, ident), below, folded, id=ident)


def data_table(head: tuple[str, ...], rows: list[tuple[str, ...]], name: str) -> Markup:
    """Give a table in a box that scrolls by itself, by keyboard too."""
    top = tag("tr", [tag("th", cell, scope="col") for cell in head])
    body = [
        tag("tr", [tag("td", cell, class_="long" if len(cell) > _LONG else "short") for cell in row]) for row in rows
    ]
    table = tag("table", tag("thead", top), tag("tbody", body))
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=name)


def swatch(kind: int) -> Markup:
    """Give the patch of colour that a legend shows before the name of a kind."""
    rect = tag("rect", class_=f"part p{kind % COLORS}", x=0, y=1, width=22, height=10)
    return tag("svg", rect, class_="swatch", viewBox="0 0 22 12", aria_hidden="true")


def svg(shown: Figure, ident: str, height: float, width: float, *parts: str | list[Markup]) -> Markup:
    """Give a drawing with its title and description, which are what is read aloud in its place."""
    return tag(
        "svg",
        tag("title", shown.title, id=f"{ident}-t"),
        tag("desc", shown.caption, id=f"{ident}-d"),
        *parts,
        class_="chart",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_labelledby=f"{ident}-t {ident}-d",
    )
