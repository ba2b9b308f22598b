"""Stacked bars, lying, one below the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forensics.figure import Bars, Mark
from forensics.io.safe_text import for_html
from forensics.report.html._axes import RIGHT, WIDTH, Scale, scale, x_axis
from forensics.report.html._elements import Markup, tag
from forensics.report.html._figures import COLORS, Drawing, Live, Table, patch, svg

_ROW, _TOP, _FOOT, _LEFT = 26.0, 8.0, 50.0, 168.0
_LIMIT = "#b8860b"
#: Few bars are higher; longer labels are cut.
_FEW, _HEAD, _LETTERS = 100.0, 30.0, 14


def bars(figure: Bars, ident: str) -> Markup:
    limit = figure.limit.at if figure.limit is not None else 0.0
    most = max(limit, *(sum(b.values) for b in figure.bars), 0.0) or 1.0
    row = max(_ROW, min(2 * _ROW, _FEW / max(1, len(figure.bars))))
    top = _TOP if figure.limit is None else _HEAD
    x = scale((0.0, most), _LEFT, WIDTH - RIGHT)
    bottom = top + row * len(figure.bars)
    grid = [tag("line", class_="grid", x1=x.at(v), x2=x.at(v), y1=top, y2=bottom) for v in x.ticks]
    drawn = [part for n in range(len(figure.bars)) for part in _bar(figure, n, x, top + n * row, row)]
    parts = grid, drawn, _limit(figure, x, top, bottom), x_axis(x, bottom, figure.unit)
    return svg(figure, ident, bottom + _FOOT, WIDTH, tag("g", *parts, aria_hidden="true"))


def _bar(figure: Bars, index: int, x: Scale, y: float, high: float) -> Iterator[Markup]:
    bar, start = figure.bars[index], 0.0
    label = bar.label if len(bar.label) <= _LETTERS else "…" + bar.label[1 - _LETTERS :]
    yield tag("text", label, class_="tick", x=_LEFT - 8, y=y + high / 2 + 3, text_anchor="end")
    for part, value in enumerate(bar.values):
        if value > 0:
            a, b = x.at(start), x.at(start + value)
            said = tag("title", f"{bar.label}, {figure.parts[part]}: {value:,.4g} {figure.unit}")
            kind = f"part p{part % COLORS}"
            yield tag("rect", said, class_=kind, x=a, y=y, width=max(0.3, b - a), height=high - 5)
            start += value


def _limit(figure: Bars, x: Scale, top: float, bottom: float) -> list[Markup]:
    if figure.limit is None:
        return []
    at = x.at(figure.limit.at)
    return [
        tag("line", class_="mark limit", x1=at, x2=at, y1=top - 6, y2=bottom),
        tag("text", figure.limit.label, class_="said limit", x=at, y=top - 10, text_anchor="end"),
    ]


def legend(figure: Bars) -> Markup:
    return tag("ul", [tag("li", patch(n), part) for n, part in enumerate(figure.parts)], class_="legend")


def table(figure: Bars) -> Table:
    head = ("", *(f"{p} ({figure.unit})" for p in figure.parts))
    return head, [(b.label, *(f"{v:,.4g}" for v in b.values)) for b in figure.bars]


def live(figure: Bars, most: int) -> Live:
    labels = [for_html(bar.label) for bar in figure.bars]
    points = len(labels) * len(figure.parts)
    if points > most:
        return Live([], {}, 0)
    bar: dict[str, Any] = {"type": "bar", "orientation": "h"}
    data = [
        {**bar, "name": for_html(part), "y": labels, "x": [b.values[n] for b in figure.bars]}
        for n, part in enumerate(figure.parts)
    ]
    axes = {"xaxis": {"title": {"text": for_html(figure.unit)}}, "yaxis": {"autorange": "reversed", "automargin": True}}
    shapes = [] if figure.limit is None else [_live_limit(figure.limit)]
    layout = {"barmode": "stack", "height": 120 + 26 * len(labels), "shapes": shapes, **axes}
    return Live(data, layout, points)


def _live_limit(limit: Mark) -> dict[str, Any]:
    line = {"dash": "dash", "color": _LIMIT}
    label = {"text": for_html(limit.label), "textposition": "end", "textangle": 0, "yanchor": "bottom"}
    where = {"yref": "paper", "x0": limit.at, "x1": limit.at, "y0": 0, "y1": 1}
    return {"type": "line", **where, "line": line, "label": label}


DRAWING = Drawing(Bars, bars, legend, table, live)
