"""A figure on the page: caption, drawing, legend, how the points were chosen, and the same as a table."""

from __future__ import annotations

from typing import assert_never

from forensics.figure import Bars, Chart, Figure, Heat, Lanes
from forensics.report.html import _svg_bars, _svg_chart, _svg_heat, _svg_lanes
from forensics.report.html._elements import Markup, join, tag

#: Cells of more characters than this are wrapped.
_LONG = 40
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def figure(shown: Figure, ident: str) -> Markup:
    """Lay out one figure."""
    drawing, below, data = _drawn(shown, ident)
    caption = tag(
        "figcaption", tag("b", shown.title), shown.caption, *([_rules(shown.rules)] if _rules(shown.rules) else [])
    )
    note = [tag("p", f"Points: {shown.note}.", class_="note")] if shown.note else []
    alternative = [_details(shown, data)] if data is not None else []
    return tag("figure", caption, drawing, below, note, alternative, id=ident)


def data_table(head: tuple[str, ...], rows: list[tuple[str, ...]], name: str) -> Markup:
    """Give a table in a box that scrolls by itself, by keyboard too."""
    top = tag("tr", [tag("th", cell, scope="col") for cell in head])
    body = [
        tag("tr", [tag("td", cell, class_="long" if len(cell) > _LONG else "short") for cell in row]) for row in rows
    ]
    table = tag("table", tag("thead", top), tag("tbody", body))
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=name)


def _drawn(shown: Figure, ident: str) -> tuple[Markup, Markup, Table | None]:
    match shown:
        case Chart():
            return _svg_chart.chart(shown, ident), _svg_chart.legend(shown), _svg_chart.table(shown)
        case Heat():
            return _svg_heat.heat(shown, ident), join(), _svg_heat.table(shown)
        case Bars():
            return _svg_bars.bars(shown, ident), _svg_bars.legend(shown), _svg_bars.table(shown)
        case Lanes():
            return _svg_lanes.lanes(shown, ident), _svg_lanes.told(shown), None
        case _:
            assert_never(shown)


def _details(shown: Figure, data: Table) -> Markup:
    head, rows = data
    return tag("details", tag("summary", "The same as a table"), data_table(head, rows, f"{shown.title}, as a table"))


def _rules(rules: tuple[str, ...]) -> str:
    return f" Findings: {', '.join(rules)}." if rules else ""
