"""Ranks over time as rows of cells: the darker, the more was recorded."""

from __future__ import annotations

from forensics.figure import Heat
from forensics.report.html._axes import LEFT, RIGHT, WIDTH
from forensics.report.html._drawing import Drawing
from forensics.report.html._elements import Markup, tag
from forensics.report.html._figures import svg

_ROW, _TOP, _FOOT = 25.0, 8.0, 34.0


def heat(figure: Heat, ident: str) -> Markup:
    """Draw a heat map; cells without a record stay empty."""
    row = _ROW if len(figure.rows) <= 32 else _ROW / 2
    height = _TOP + row * len(figure.rows) + _FOOT
    columns = max((len(c) for c in figure.cells), default=1)
    wide = (WIDTH - LEFT - RIGHT) / columns
    parts: list[Markup] = []
    for index, (name, cells) in enumerate(zip(figure.rows, figure.cells, strict=True)):
        y = _TOP + index * row
        bad = name in figure.culprits
        if row == _ROW or index % 4 == 0 or bad:
            said = ("▶ " if bad else "") + name
            parts.append(
                tag(
                    "text",
                    said,
                    class_="tick culprit" if bad else "tick",
                    x=LEFT - 8,
                    y=y + row * 0.7,
                    text_anchor="end",
                )
            )
        parts.append(tag("rect", class_="row", x=LEFT, y=y, width=WIDTH - LEFT - RIGHT, height=row - 2))
        for column, share in enumerate(cells):
            if share is not None:
                parts.append(tag("rect", class_="cell bad" if bad else "cell", x=LEFT + column * wide, y=y, width=wide,
                                 height=row - 2, fill_opacity=f"{0.25 + 0.75 * share:.2f}"))  # fmt: skip
    parts += [
        tag("rect", class_="flag", x=LEFT + (c + 0.5) * wide - 3, y=_TOP + r * row + row / 2 - 4, width=6, height=6)
        for r, c in figure.flagged
    ]
    foot = height - 12
    parts.append(tag("text", figure.edges[0], class_="tick", x=LEFT, y=foot))
    parts.append(tag("text", figure.edges[1], class_="tick", x=WIDTH - RIGHT, y=foot, text_anchor="end"))
    return svg(figure, ident, height, WIDTH, tag("g", parts, aria_hidden="true"))


def table(figure: Heat) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Give where each row was last seen."""
    return ("last seen",), [(told,) for told in figure.told]


def legend(figure: Heat) -> Markup:
    """Say what shade and mark mean."""
    cell = tag("rect", class_="cell", x=0, y=1, width=22, height=10)
    items = [tag("li", _swatch(cell), f"{figure.unit}, the darker the more")]
    if figure.flagged:
        items.append(tag("li", _swatch(tag("rect", class_="flag", x=8, y=3, width=6, height=6)), figure.flag))
    return tag("ul", items, class_="legend")


def _swatch(inside: Markup) -> Markup:
    return tag("svg", inside, class_="swatch", viewBox="0 0 22 12", aria_hidden="true")


DRAWING = Drawing(Heat, heat, legend, table)
