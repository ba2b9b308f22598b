"""A chart over steps: curves, non-finite values, levels, and labelled marks.

For Plotly, curves have holes where records were not finite, and marks and gaps are shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forensics.figure import Chart, Curve, Level, Mark
from forensics.figures import MOST_TICKS, note_of, shrunk
from forensics.io.safe_text import for_html
from forensics.report.html._axes import BOTTOM, LEFT, LETTER, RIGHT, WIDTH, Scale, around, frame, short
from forensics.report.html._elements import Markup, some, tag
from forensics.report.html._figures import Drawing, Live, Table, svg, swatch

_HEIGHT = 330.0
#: Room between the top of the frame and the data for the row of non-finite records.
_BAND = 14.0
_COLORS = 8
#: Lines of words above the frame: the name of the axis and the checkpoint to go back to, below it the onset.
_LINES = {"clean": 18.0, "event": 18.0, "onset": 42.0}
_TOP, _TOP_OF_ONE = 50.0, 28.0
#: More levels than this have no words of their own.
_MOST_SAID = 4
_LIVE_COLORS = {"onset": "#d1453b", "clean": "#2e8b57", "limit": "#b8860b"}
_OTHER = "#888888"
#: Fewer points than this for a curve show nothing of it.
_FEWEST = 8
_LINES_OF: dict[str, Any] = {"type": "scatter", "mode": "lines"}


def chart(figure: Chart, ident: str) -> Markup:
    """Draw a chart; `ident` makes the ids of its title and description unique."""
    top = _TOP if any(m.role == "onset" for m in figure.marks) else _TOP_OF_ONE
    x = around(_xs(figure), LEFT, WIDTH - RIGHT, room=0.0)
    log = figure.log and all(v > 0 for c in figure.curves for v in c.y)
    y = around(_ys(figure), _HEIGHT - BOTTOM, top + _BAND, log=log)
    name = figure.y_label + (" (log)" if log else "")
    bad = any(c.culprit for c in figure.curves)
    numbered = sorted(enumerate(figure.curves), key=lambda one: one[1].culprit)
    drawn = [
        frame(x, y, figure.x_label, name),
        *(_curve(c, _color(c, n, bad=bad), x, y) for n, c in numbered),
        *_levels(figure.levels, x, y),
        *_checkpoints(figure, x, y, top),
        *(_gaps(c, x, top) for c in figure.curves),
        *(_mark(m, x, y, top, 12 + LETTER * len(name)) for m in figure.marks if m.role != "checkpoint"),
    ]
    return svg(figure, ident, _HEIGHT, WIDTH, drawn)


def legend(figure: Chart) -> Markup:
    """Name the curves when there are several, and every mark without a label."""
    bad = any(c.culprit for c in figure.curves)
    named = [(_swatch(_color(c, n, bad=bad)), c) for n, c in enumerate(figure.curves) if len(figure.curves) > 1]
    items = [tag("li", drawn, _named(c), class_=c.culprit and "culprit") for drawn, c in named]
    if any(c.gaps for c in figure.curves):
        items.append(tag("li", _swatch("gap"), "not finite (NaN or infinite)"))
    if figure.levels:
        items.append(tag("li", _swatch("level"), "level"))
    steps = [short(m.at) for m in figure.marks if m.role == "checkpoint"]
    if len(steps) > 1:  # one has its words in the drawing
        items.append(tag("li", _swatch("mark checkpoint"), f"checkpoints at steps {', '.join(steps)}"))
    return some("ul", items, class_="legend")


def _named(curve: Curve) -> str:
    return f"▶ {curve.label}" if curve.culprit else curve.label


def table(figure: Chart, most: int = 24) -> Table:
    """Give head and rows of the same data: evenly chosen points of each curve, every gap, every mark."""
    head = ("series", figure.x_label, figure.y_label)
    rows: list[tuple[str, ...]] = []
    each = max(4, most // max(1, len(figure.curves)))
    for curve in figure.curves:
        points = list(zip(curve.x, curve.y, strict=True))
        step = max(1, -(-len(points) // each))
        chosen = [*points[::step], *(points[-1:] if (len(points) - 1) % step else [])]
        rows += [(curve.label, f"{a:g}", f"{b:.6g}") for a, b in chosen]
        rows += [
            (curve.label, f"{g.first:g} to {g.last:g}" if g.last > g.first else f"{g.first:g}", g.what)
            for g in curve.gaps[:each]
        ]
    rows += [("mark", f"{m.at:g}", m.label) for m in figure.marks]
    rows += [("level", f"{v.first:g} to {v.last:g}", f"{v.y:.6g}") for v in figure.levels]
    return head, rows


def _xs(figure: Chart) -> Iterator[float]:
    for curve in figure.curves:
        yield from curve.x
        for gap in curve.gaps:
            yield from (gap.first, gap.last)
    yield from (m.at for m in figure.marks if m.role != "limit")


def _ys(figure: Chart) -> Iterator[float]:
    read = [v for c in figure.curves for v in c.y]
    yield from read
    yield from (v.y for v in figure.levels)
    top = max(read, default=0.0)
    # a limit far above the data would press it flat
    yield from (m.at for m in figure.marks if m.role == "limit" and m.at <= 3 * top)


def _color(curve: Curve, number: int, *, bad: bool) -> str:
    """The class of a curve: beside a culprit the others step back."""
    ahead = " ahead" if curve.projected else ""
    return "curve bad" + ahead if curve.culprit else f"curve c{number % _COLORS}" + (" faint" if bad else "") + ahead


def _curve(curve: Curve, color: str, x: Scale, y: Scale) -> Markup:
    pieces = [
        tag("polyline", class_=color, points=" ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in piece))
        if len(piece) > 1
        else tag("circle", class_=color.replace("curve", "dot"), cx=x.at(piece[0][0]), cy=y.at(piece[0][1]), r=3)
        for piece in _pieces(curve)
    ]
    return tag("g", pieces)


def _pieces(curve: Curve) -> list[list[tuple[float, float]]]:
    """Cut a curve where records between two points were not finite, or where its axis goes back."""
    starts = sorted(g.first for g in curve.gaps)
    pieces: list[list[tuple[float, float]]] = []
    for point in zip(curve.x, curve.y, strict=True):
        before = pieces[-1][-1][0] if pieces else None
        if before is None or point[0] < before or any(before < s < point[0] for s in starts):
            pieces.append([point])
        else:
            pieces[-1].append(point)
    return pieces


def _levels(levels: tuple[Level, ...], x: Scale, y: Scale) -> Iterator[Markup]:
    for level in levels:
        a, b, at = x.at(level.first), x.at(level.last), y.at(level.y)
        yield tag("line", class_="level", x1=a, x2=b, y1=at, y2=at)
        if len(levels) <= _MOST_SAID:
            yield tag(
                "text", short(float(f"{level.y:.3g}")), class_="said", x=(a + b) / 2, y=at - 8, text_anchor="middle"
            )


def _gaps(curve: Curve, x: Scale, top: float) -> Markup:
    return tag(
        "g",
        [
            tag("rect", tag("title", f"{g.what}, {g.records:,} records"), class_="gap", x=x.at(g.first) - 2, y=top,
                width=max(4.0, x.at(g.last) - x.at(g.first) + 4), height=9)
            for g in curve.gaps
        ],
    )  # fmt: skip


def _checkpoints(figure: Chart, x: Scale, y: Scale, top: float) -> Iterator[Markup]:
    """Draw the checkpoints; each has its words beside it where there is room."""
    free = x.start
    for mark in sorted((m for m in figure.marks if m.role == "checkpoint"), key=lambda m: m.at):
        at, said = x.at(mark.at), mark.label
        line = tag("line", class_="mark checkpoint", x1=at, x2=at, y1=top, y2=y.start)
        wide = 4 + LETTER * len(said)
        has_room = free <= at and at + wide <= x.end
        words = [tag("text", said, class_="tick said", x=at + 4, y=y.start - 6)] if has_room else []
        free = at + wide if has_room else free
        yield tag("g", line, tag("title", mark.label), words)


def _mark(mark: Mark, x: Scale, y: Scale, top: float, named: float) -> Markup:
    """Draw a mark with its words above the frame, right of the name of the axis, which ends at `named`."""
    if mark.role == "limit":
        at = y.at(mark.at)
        if mark.at > y.high:
            return tag("text", f"{mark.label}, above", class_="said limit", x=x.start + 6, y=top + 26)
        line = tag("line", class_="mark limit", x1=x.start, x2=x.end, y1=at, y2=at)
        return tag("g", line, tag("text", mark.label, class_="said limit", x=x.start + 6, y=at + 16))
    at, wide, base = x.at(mark.at), LETTER * len(mark.label), _LINES[mark.role]
    line = tag("line", class_=f"mark {mark.role}", x1=at, x2=at, y1=base + 4, y2=y.start)
    least = named if base < _LINES["onset"] else 4.0
    if at + wide / 2 > WIDTH:
        place, anchor = max(at + 4, least + wide), "end"
    elif at - wide / 2 < least:
        place, anchor = max(at - 4, least), "start"
    else:
        place, anchor = at, "middle"
    return tag("g", line, tag("text", mark.label, class_=f"said {mark.role}", x=place, y=base, text_anchor=anchor))


def _swatch(kind: str) -> Markup:
    if kind == "gap":
        shown = tag("rect", class_=kind, x=0, y=2, width=22, height=8)
    elif kind.startswith("mark"):
        shown = tag("line", class_=kind, x1=11, x2=11, y1=0, y2=12)
    else:
        shown = tag("line", class_=kind, x1=0, x2=22, y1=6, y2=6)
    return swatch(shown)


def live(figure: Chart, most: int) -> Live:
    """Give the chart with at most `most` points; none where they would not show its curves."""
    room = most - 2 * len(figure.levels)
    each = room // max(1, len(figure.curves))
    if each < _FEWEST:
        return Live([], {}, 0)
    # a hole is a point of its own, and shrinking keeps the two ends beside the extremes
    kept = tuple(shrunk(c, max(4, each - len(c.gaps) - 2)) for c in figure.curves)
    data = [*map(_trace, kept), *_live_levels(figure)]
    points = sum(len(trace["x"]) for trace in data)
    if points > most:
        return Live([], {}, 0)
    return Live(data, _layout(figure), points, note_of(tuple(c for c in kept if not c.projected)))


def _trace(curve: Curve) -> dict[str, Any]:
    x, y = _broken(curve)
    line: dict[str, Any] = {"dash": "dash"} if curve.projected else {}
    if curve.culprit:
        line |= {"color": _LIVE_COLORS["onset"], "width": 3}
    return {**_LINES_OF, "name": for_html(_named(curve)), "x": x, "y": y, "line": line}


def _live_levels(figure: Chart) -> Iterator[dict[str, Any]]:
    for level in figure.levels:
        ends = {"x": [level.first, level.last], "y": [level.y, level.y]}
        yield {**_LINES_OF, "name": for_html(level.label), **ends, "line": {"width": 3}, "firm": True}


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
    lines = [_line(m.at, _LIVE_COLORS.get(m.role, _OTHER), "dot" if m.role == "checkpoint" else "solid") for m in marks]
    gaps = [
        {"type": "rect", "xref": "x", "yref": "paper", "x0": g.first, "x1": g.last, "y0": 0.97, "y1": 1,
         "fillcolor": _LIVE_COLORS["onset"], "line": {"color": _LIVE_COLORS["onset"]}}
        for c in figure.curves for g in c.gaps
    ]  # fmt: skip
    said = [
        {"x": m.at, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 14 * (m.role == "clean"),
         "text": for_html(m.label), "showarrow": False, "font": {"color": _LIVE_COLORS[m.role]}}
        for m in marks
        if m.role in _LIVE_COLORS
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
             "line": {"color": _LIVE_COLORS["limit"], "dash": "dash"}}
            for at in limits
        ]  # fmt: skip
    return {"shapes": [*lines, *gaps], "annotations": said, **axes}


def _line(at: float, color: str, dash: str) -> dict[str, Any]:
    where = {"xref": "x", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1}
    return {"type": "line", **where, "line": {"color": color, "dash": dash}}


DRAWING = Drawing(Chart, chart, legend, table, live)
