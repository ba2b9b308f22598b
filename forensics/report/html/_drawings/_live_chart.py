"""A chart over steps for Plotly: curves with holes where records were not finite, marks and gaps as shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forensics.figure import Chart, Curve
from forensics.figures import MOST_TICKS, note_of, shrunk
from forensics.io.safe_text import for_html
from forensics.report.html._axes import around
from forensics.report.html._drawing import Live

_COLORS = {"onset": "#d1453b", "clean": "#2e8b57", "limit": "#b8860b"}
_OTHER = "#888888"
#: Fewer points than this for a curve show nothing of it.
_FEWEST = 8


def live(figure: Chart, most: int) -> Live:
    """Give the chart with at most `most` points; none where they would not show its curves."""
    room = most - 2 * len(figure.levels)
    each = room // max(1, len(figure.curves))
    if each < _FEWEST:
        return Live([], {}, 0)
    # a hole is a point of its own, and shrinking keeps the two ends beside the extremes
    kept = tuple(shrunk(c, max(4, each - len(c.gaps) - 2)) for c in figure.curves)
    data = [*map(_trace, kept), *_levels(figure)]
    points = sum(len(trace["x"]) for trace in data)
    if points > most:
        return Live([], {}, 0)
    return Live(data, _layout(figure), points, note_of(tuple(c for c in kept if not c.projected)))


def _trace(curve: Curve) -> dict[str, Any]:
    x, y = _broken(curve)
    line: dict[str, Any] = {"dash": "dash"} if curve.projected else {}
    if curve.culprit:
        line |= {"color": _COLORS["onset"], "width": 3}
    name = for_html(f"▶ {curve.label}" if curve.culprit else curve.label)
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": line}


def _levels(figure: Chart) -> Iterator[dict[str, Any]]:
    for level in figure.levels:
        yield {
            "type": "scatter",
            "mode": "lines",
            "name": for_html(level.label),
            "x": [level.first, level.last],
            "y": [level.y, level.y],
            "line": {"width": 3},
            "firm": True,
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
    marks = [m for m in figure.marks if m.role != "limit"]
    lines = [_line(m.at, _COLORS.get(m.role, _OTHER), "dot" if m.role == "checkpoint" else "solid") for m in marks]
    gaps = [
        {"type": "rect", "xref": "x", "yref": "paper", "x0": g.first, "x1": g.last, "y0": 0.97, "y1": 1,
         "fillcolor": _COLORS["onset"], "line": {"color": _COLORS["onset"]}}
        for c in figure.curves for g in c.gaps
    ]  # fmt: skip
    said = [
        {"x": m.at, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 14 * (m.role == "clean"),
         "text": for_html(m.label), "showarrow": False, "font": {"color": _COLORS[m.role]}}
        for m in marks
        if m.role in _COLORS
    ]  # fmt: skip
    axes: dict[str, dict[str, Any]] = {
        "xaxis": {"title": {"text": for_html(figure.x_label)}, "nticks": MOST_TICKS},
        "yaxis": {
            "title": {"text": for_html(figure.y_label)},
            "type": "log" if figure.log else "linear",
            "nticks": MOST_TICKS,
        },
    }
    values = [v for c in figure.curves for v in c.y]
    if values and not figure.log:  # the scale of the drawing knows values that differ by rounding only
        limits = [m.at for m in figure.marks if m.role == "limit" and m.at <= 3 * max(values)]
        y = around([*values, *limits], 0.0, 1.0)
        axes["yaxis"]["range"] = [y.low, y.high]
        lines += [
            {"type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": at, "y1": at,
             "line": {"color": _COLORS["limit"], "dash": "dash"}}
            for at in limits
        ]  # fmt: skip
    return {"shapes": [*lines, *gaps], "annotations": said, **axes}


def _line(at: float, color: str, dash: str) -> dict[str, Any]:
    where = {"xref": "x", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1}
    return {"type": "line", **where, "line": {"color": color, "dash": dash}}
