"""Stacked bars, lying, one below the other."""

from __future__ import annotations

from forensics.figure import Bars
from forensics.io.safe_text import for_html
from forensics.report.html._axes import RIGHT, WIDTH, Scale, short, x_tick
from forensics.report.html._drawing import Drawing, Live
from forensics.report.html._elements import Markup, tag
from forensics.report.html._figures import svg

_ROW, _TOP, _FOOT, _LEFT = 24.0, 8.0, 46.0, 110.0
_COLORS = 9


def bars(figure: Bars, ident: str) -> Markup:
    """Draw the bars on one axis that begins at zero."""
    most = max((sum(b.values) for b in figure.bars), default=0.0) or 1.0
    x = Scale(0.0, most, _LEFT, WIDTH - RIGHT)
    bottom = _TOP + _ROW * len(figure.bars)
    parts: list[Markup] = []
    for value in x.ticks():
        parts.append(tag("line", class_="grid", x1=x.at(value), x2=x.at(value), y1=_TOP, y2=bottom))
        parts.append(x_tick(short(value), x.at(value), bottom + 18, x.end))
    for index, bar in enumerate(figure.bars):
        y, start = _TOP + index * _ROW, 0.0
        parts.append(tag("text", _fitted(bar.label), class_="tick", x=_LEFT - 8, y=y + 15, text_anchor="end"))
        for part, value in enumerate(bar.values):
            if value > 0:
                a, b = x.at(start), x.at(start + value)
                said = tag("title", f"{bar.label}, {figure.parts[part]}: {value:,.4g} {figure.unit}")
                parts.append(
                    tag(
                        "rect", said, class_=f"part p{part % _COLORS}", x=a, y=y, width=max(0.3, b - a), height=_ROW - 5
                    )
                )
                start += value
    parts.append(tag("text", figure.unit, class_="name", x=WIDTH - RIGHT, y=bottom + 40, text_anchor="end"))
    return svg(figure, ident, bottom + _FOOT, WIDTH, tag("g", parts, aria_hidden="true"))


def legend(figure: Bars) -> Markup:
    """Name the parts."""
    return tag("ul", [tag("li", _swatch(n), part) for n, part in enumerate(figure.parts)], class_="legend")


def table(figure: Bars) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Give every value."""
    head = ("", *(f"{p} ({figure.unit})" for p in figure.parts))
    return head, [(b.label, *(f"{v:,.4g}" for v in b.values)) for b in figure.bars]


def _fitted(label: str) -> str:
    return label if len(label) <= 14 else "…" + label[-13:]


def _swatch(part: int) -> Markup:
    rect = tag("rect", class_=f"part p{part % _COLORS}", x=0, y=1, width=22, height=10)
    return tag("svg", rect, class_="swatch", viewBox="0 0 22 12", aria_hidden="true")


def live(figure: Bars, most: int) -> Live:
    """Give the bars for Plotly."""
    labels = [for_html(bar.label) for bar in figure.bars]
    points = len(labels) * len(figure.parts)
    if points > most:
        return Live([], {}, 0)
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": for_html(part),
            "y": labels,
            "x": [b.values[n] for b in figure.bars],
        }
        for n, part in enumerate(figure.parts)
    ]
    axes = {"xaxis": {"title": {"text": for_html(figure.unit)}}, "yaxis": {"autorange": "reversed", "automargin": True}}
    return Live(data, {"barmode": "stack", "height": 160 + 26 * len(labels), **axes}, points)


DRAWING = Drawing(Bars, bars, legend, table, live)
