"""A chart over steps: curves, what is not finite, levels, and the places that matter."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.figure import Chart, Curve, Mark
from forensics.report.html._axes import BOTTOM, LEFT, RIGHT, TOP, WIDTH, Scale, around, frame, short
from forensics.report.html._drawing import Drawing
from forensics.report.html._drawings._live_chart import live
from forensics.report.html._elements import Markup, tag
from forensics.report.html._figures import svg

_HEIGHT = 330.0
#: Room between the top of the frame and the data for the row of non-finite records.
_BAND = 14.0
_COLORS = 8
_MARK_WORDS = {"onset": "onset", "clean": "last clean", "checkpoint": "checkpoint", "event": "event", "limit": "limit"}


def chart(figure: Chart, ident: str) -> Markup:
    """Draw a chart; `ident` makes the ids of its title and description unique."""
    x = around(_xs(figure), LEFT, WIDTH - RIGHT, room=0.0)
    log = figure.log and all(v > 0 for c in figure.curves for v in c.y)
    y = around(_ys(figure), _HEIGHT - BOTTOM, TOP + _BAND, log=log)
    drawn = [
        frame(x, y, figure.x_label, figure.y_label + (" (log)" if log else "")),
        *(_mark(m, x, y) for m in sorted(figure.marks, key=lambda m: m.role != "checkpoint")),
        *(_curve(c, n, x, y) for n, c in enumerate(figure.curves)),
        *(
            tag("line", class_="level", x1=x.at(v.first), x2=x.at(v.last), y1=y.at(v.y), y2=y.at(v.y))
            for v in figure.levels
        ),
        *(_gaps(c, x) for c in figure.curves),
    ]
    return svg(figure, ident, _HEIGHT, WIDTH, drawn)


def legend(figure: Chart) -> Markup:
    """Name the curves and the kinds of marks that are drawn."""
    items = [tag("li", _swatch(f"c{n % _COLORS}", dashed=c.projected), c.label) for n, c in enumerate(figure.curves)]
    if any(c.gaps for c in figure.curves):
        items.append(tag("li", _swatch("gap"), "not finite (NaN or infinite)"))
    if figure.levels:
        items.append(tag("li", _swatch("level"), "level"))
    labels = [m for m in figure.marks if m.role != "checkpoint"]
    items += [tag("li", _swatch(m.role), m.label) for m in labels]
    if any(m.role == "checkpoint" for m in figure.marks):
        steps = ", ".join(f"{m.at:g}" for m in figure.marks if m.role == "checkpoint")
        items.append(tag("li", _swatch("checkpoint"), f"checkpoints at steps {steps}"))
    return tag("ul", items, class_="legend")


def table(figure: Chart, most: int = 24) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
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


def _curve(curve: Curve, number: int, x: Scale, y: Scale) -> Markup:
    color = f"c{number % _COLORS}"
    pieces = [
        tag("polyline", class_=f"curve {color}" + (" ahead" if curve.projected else ""), points=_points(piece, x, y))
        if len(piece) > 1
        else tag("circle", class_=f"dot {color}", cx=x.at(piece[0][0]), cy=y.at(piece[0][1]), r=3)
        for piece in _pieces(curve)
    ]
    return tag("g", pieces)


def _points(piece: list[tuple[float, float]], x: Scale, y: Scale) -> str:
    return " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in piece)


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


def _gaps(curve: Curve, x: Scale) -> Markup:
    return tag(
        "g",
        [
            tag("rect", tag("title", f"{g.what}, {g.records:,} records"), class_="gap", x=x.at(g.first) - 2, y=TOP,
                width=max(4.0, x.at(g.last) - x.at(g.first) + 4), height=9)
            for g in curve.gaps
        ],
    )  # fmt: skip


def _mark(mark: Mark, x: Scale, y: Scale) -> Markup:
    if mark.role == "limit":
        at = y.at(mark.at)
        line = tag("line", class_="mark limit", x1=x.start, x2=x.end, y1=at, y2=at)
        return tag(
            "g", line, tag("text", f"size {short(mark.at)}", class_="said", x=x.end - 4, y=at - 5, text_anchor="end")
        )
    at = x.at(mark.at)
    line = tag("line", class_=f"mark {mark.role}", x1=at, x2=at, y1=TOP, y2=y.start)
    if mark.role == "checkpoint":
        return tag("g", line, tag("title", mark.label))
    right = at > (x.start + x.end) / 2
    up = 26.0 if mark.role == "onset" else 12.0
    said = tag("text", _word(mark), class_=f"said {mark.role}", x=at + (-4 if right else 4), y=TOP - 30 + up,
               text_anchor="end" if right else "start")  # fmt: skip
    return tag("g", line, said)


def _word(mark: Mark) -> str:
    return mark.label.split(",", 1)[0] if mark.role == "event" else _MARK_WORDS[mark.role]


def _swatch(color: str, *, dashed: bool = False) -> Markup:
    line = tag("line", class_=f"curve {color}" + (" ahead" if dashed else ""), x1=0, x2=22, y1=6, y2=6)
    other = tag("rect", class_=color, x=0, y=2, width=22, height=8) if color == "gap" else None
    mark = tag("line", class_=f"mark {color}", x1=11, x2=11, y1=0, y2=12) if color in _MARK_WORDS else None
    level = tag("line", class_="level", x1=0, x2=22, y1=6, y2=6) if color == "level" else None
    shown = other or mark or level or line
    return tag("svg", shown, class_="swatch", viewBox="0 0 22 12", aria_hidden="true")


DRAWING = Drawing(Chart, chart, legend, table, live)
