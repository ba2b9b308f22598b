"""A chart as a picture the height of two lines, for a row of a table: curves and onset, no words."""

from __future__ import annotations

from forensics.figure import Chart
from forensics.figures import shrunk
from forensics.report.html._axes import around
from forensics.report.html._elements import Markup, join, tag

_WIDE, _HIGH, _EDGE = 160.0, 44.0, 3.0
_MOST_CURVES, _MOST_POINTS = 3, 60


def spark(figure: Chart) -> Markup:
    """Draw the first curves of a chart, those of culprits on top; nothing of a chart without a point."""
    curves = sorted(figure.curves[:_MOST_CURVES], key=lambda c: c.culprit)
    thin = [(shrunk(c, _MOST_POINTS), c.culprit) for c in curves if c.x]
    if not thin:
        return join()
    onsets = [m.at for m in figure.marks if m.role == "onset"]
    log = figure.log and all(v > 0 for c, _ in thin for v in c.y)
    x = around([*onsets, *(v for c, _ in thin for v in c.x)], _EDGE, _WIDE - _EDGE, room=0.0)
    y = around((v for c, _ in thin for v in c.y), _HIGH - _EDGE, _EDGE, log=log)
    lines = [
        tag(
            "polyline",
            class_="curve bad" if bad else "curve c0",
            points=" ".join(f"{x.at(a):.0f},{y.at(b):.1f}" for a, b in zip(c.x, c.y, strict=True)),
        )
        for c, bad in thin
    ]
    marks = [tag("line", class_="mark onset", x1=x.at(v), x2=x.at(v), y1=0, y2=_HIGH) for v in onsets]
    size = f"0 0 {_WIDE:.0f} {_HIGH:.0f}"
    return tag("svg", lines, marks, class_="spark", viewBox=size, aria_hidden="true")
