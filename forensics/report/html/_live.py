"""The scripts of an interactive page: Plotly's own, and one of ours that gives it the figures of the page.

Each drawing stays where it is, for readers without scripts and for paper; the script puts a chart that can be zoomed in
its place. Everything is inline: nothing is loaded, and no button offers to send anything anywhere. Plotly takes some
markup in its texts, so every text of an input is escaped for HTML before it is encoded for the script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from forensics.figure import Bars, Chart, Curve, Figure
from forensics.figures import shrunk
from forensics.io.safe_text import for_html
from forensics.io.tolerant_json import dumps
from forensics.report.html._axes import around

#: So many points are given to a page at most, over all of its charts.
MOST_POINTS = 20_000
_CONFIG = {"responsive": True, "displaylogo": False, "showSendToCloud": False, "plotlyServerURL": ""}
_OURS = """
(function(){var dark=matchMedia('(prefers-color-scheme: dark)').matches,fg=dark?'#e6e9ec':'#1b1f24',
grid=dark?'#3a424a':'#d0d7de';GIVEN.figures.forEach(function(f){var box=document.getElementById(f.id),
svg=box&&box.querySelector('svg.chart');if(!svg)return;var div=document.createElement('div');div.className='live';
svg.after(div);f.layout.font={color:fg};f.layout.paper_bgcolor=f.layout.plot_bgcolor='rgba(0,0,0,0)';
['xaxis','yaxis'].forEach(function(a){f.layout[a].gridcolor=grid;f.layout[a].zerolinecolor=grid;});
Plotly.newPlot(div,f.data,f.layout,GIVEN.config).then(function(){svg.classList.add('still');});});})();
"""


def scripts(figures: Sequence[tuple[str, Figure]]) -> tuple[str, str]:
    """Give the text of both scripts for figures with the ids of their boxes."""
    plotly: Any = import_module("plotly.offline")  # large, without types, and only for an interactive page

    charts = sum(isinstance(f, Chart) for _, f in figures)
    each = MOST_POINTS // max(1, charts)
    shown = [{"id": ident, **made} for ident, f in figures if (made := _plot(f, each)) is not None]
    head = f"var GIVEN={_encoded({'figures': shown, 'config': _CONFIG})};"
    return str(plotly.get_plotlyjs()).replace("</script", "<\\/script"), head + _OURS


def _encoded(value: Mapping[str, object]) -> str:
    """JSON that no parser of HTML can take for the end of a script."""
    text = dumps(value).decode("utf-8").strip()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _plot(figure: Figure, each: int) -> dict[str, Any] | None:
    if isinstance(figure, Chart):
        return {"data": list(_traces(figure, each)), "layout": _layout(figure)}
    if isinstance(figure, Bars):
        labels = [for_html(bar.label) for bar in figure.bars]
        data = [
            {
                "type": "bar",
                "orientation": "h",
                "name": for_html(p),
                "y": labels,
                "x": [b.values[n] for b in figure.bars],
            }
            for n, p in enumerate(figure.parts)
        ]
        axes = {
            "xaxis": {"title": {"text": for_html(figure.unit)}},
            "yaxis": {"autorange": "reversed", "automargin": True},
        }
        return {"data": data, "layout": {"barmode": "stack", "height": 140 + 26 * len(labels), **_FRAME, **axes}}
    return None


_FRAME: dict[str, Any] = {"margin": {"l": 70, "r": 20, "t": 30, "b": 50}, "legend": {"orientation": "h", "y": -0.25}}


def _traces(figure: Chart, each: int) -> Iterator[dict[str, Any]]:
    most = each // max(1, len(figure.curves))
    for curve in figure.curves:
        kept = shrunk(curve, max(8, most))
        x, y = _broken(kept)
        dash = {"dash": "dash"} if curve.projected else {}
        yield {"type": "scatter", "mode": "lines", "name": for_html(curve.label), "x": x, "y": y, "line": dash}
    for level in figure.levels:
        xs, ys = [level.first, level.last], [level.y, level.y]
        yield {
            "type": "scatter",
            "mode": "lines",
            "name": for_html(level.label),
            "x": xs,
            "y": ys,
            "line": {"width": 3},
        }


def _broken(curve: Curve) -> tuple[list[float], list[float | None]]:
    """Points with a hole where records between them were not finite."""
    x, y = list[float](), list[float | None]()
    starts = sorted(g.first for g in curve.gaps)
    for a, b in zip(curve.x, curve.y, strict=True):
        if x and any(x[-1] < s < a for s in starts):
            x.append(a)
            y.append(None)
        x.append(a)
        y.append(b)
    return x, y


def _layout(figure: Chart) -> dict[str, Any]:
    colors = {"onset": "#d1453b", "clean": "#2e8b57"}
    lines = [
        {"type": "line", "xref": "x", "yref": "paper", "x0": m.at, "x1": m.at, "y0": 0, "y1": 1,
         "line": {"color": colors.get(m.role, "#888888"), "dash": "dot" if m.role == "checkpoint" else "solid"}}
        for m in figure.marks if m.role != "limit"
    ]  # fmt: skip
    gaps = [
        {"type": "rect", "xref": "x", "yref": "paper", "x0": g.first, "x1": g.last, "y0": 0.97, "y1": 1,
         "fillcolor": "#d1453b", "line": {"color": "#d1453b"}}
        for c in figure.curves for g in c.gaps
    ]  # fmt: skip
    said = [
        {"x": m.at, "y": 1, "yref": "paper", "yanchor": "bottom", "text": for_html(m.role), "showarrow": False}
        for m in figure.marks
        if m.role in colors
    ]
    axes: dict[str, dict[str, Any]] = {
        "xaxis": {"title": {"text": for_html(figure.x_label)}},
        "yaxis": {"title": {"text": for_html(figure.y_label)}, "type": "log" if figure.log else "linear"},
    }
    values = [v for c in figure.curves for v in c.y]
    if values and not figure.log:  # the scale of the drawing knows values that differ by rounding only
        y = around(values, 0.0, 1.0)
        axes["yaxis"]["range"] = [y.low, y.high]
    return {**_FRAME, "height": 420, "shapes": [*lines, *gaps], "annotations": said, **axes}
