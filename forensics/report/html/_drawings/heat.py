"""Ranks over time as rows of cells: the darker, the more was recorded."""

from __future__ import annotations

from forensics.figure import Heat
from forensics.report.html._axes import LEFT, LETTER, RIGHT, WIDTH, Scale, x_axis
from forensics.report.html._elements import Markup, tag
from forensics.report.html._figures import Drawing, Table, svg, swatch

_ROW, _FOOT, _HEAD, _PLAIN_HEAD = 26.0, 50.0, 28.0, 8.0
#: Few rows are higher: together they are as high as this, each at most twice as high as others.
_FEW = 180.0
#: More rows are half as high, and every fourth has its name.
_MOST_HIGH, _NAMED = 32, 4


def heat(figure: Heat, ident: str) -> Markup:
    row = max(_ROW, min(2 * _ROW, _FEW / max(1, len(figure.rows)))) if len(figure.rows) <= _MOST_HIGH else _ROW / 2
    top = _HEAD if figure.marks else _PLAIN_HEAD
    bottom = top + row * len(figure.rows)
    x = Scale(0.0, 1.0, LEFT, WIDTH - max(RIGHT, 8 + LETTER * max(map(len, figure.ends), default=0)))
    parts = [part for n in range(len(figure.rows)) for part in _row(figure, n, x, top + n * row, row)]
    wide = (x.end - x.start) / max((len(c) for c in figure.cells), default=1)
    parts += [
        tag("rect", class_="flag", x=x.start + (c + 0.5) * wide - 3, y=top + r * row + row / 2 - 4, width=6, height=6)
        for r, c in figure.flagged
    ]
    for mark in figure.marks:
        at = x.at(mark.at)
        anchor = "end" if at > WIDTH / 2 else "start"
        parts.append(tag("line", class_=f"mark {mark.role}", x1=at, x2=at, y1=top - 6, y2=bottom))
        parts.append(tag("text", mark.label, class_=f"said {mark.role}", x=at, y=top - 9, text_anchor=anchor))
    parts += x_axis(x, bottom, figure.x_label, [(x.at(share), said) for share, said in figure.ticks] or [(x.end, "")])
    return svg(figure, ident, bottom + _FOOT, WIDTH, tag("g", parts, aria_hidden="true"))


def _row(figure: Heat, index: int, x: Scale, y: float, high: float) -> list[Markup]:
    name, cells = figure.rows[index], figure.cells[index]
    bad = name in figure.culprits
    wide = (x.end - x.start) / max(1, len(cells))
    parts = [tag("rect", class_="row", x=x.start, y=y, width=x.end - x.start, height=high - 2)]
    parts += [
        tag("rect", class_="cell bad" if bad else "cell", x=x.start + column * wide, y=y, width=wide, height=high - 2,
            fill_opacity=f"{0.25 + 0.75 * share:.2f}")
        for column, share in enumerate(cells) if share is not None
    ]  # fmt: skip
    if high >= _ROW or index % _NAMED == 0 or bad:
        kind, base = "tick culprit" if bad else "tick", y + high / 2 + 4
        said = ("▶" if bad else "") + name
        parts.append(tag("text", said, class_=kind, x=x.start - 6, y=base, text_anchor="end"))
        if figure.ends:
            parts.append(tag("text", figure.ends[index], class_=kind, x=x.end + 6, y=base))
    return parts


def table(figure: Heat) -> Table:
    return ("last seen",), [(told,) for told in figure.told]


def legend(figure: Heat) -> Markup:
    cell = tag("rect", class_="cell", x=0, y=1, width=22, height=10)
    items = [tag("li", swatch(cell), f"{figure.unit}, the darker the more")]
    if figure.culprits:
        items.append(tag("li", "▶ culprit", class_="culprit"))
    if figure.flagged:
        items.append(tag("li", swatch(tag("rect", class_="flag", x=8, y=3, width=6, height=6)), figure.flag))
    return tag("ul", items, class_="legend")


DRAWING = Drawing(Heat, heat, legend, table)
