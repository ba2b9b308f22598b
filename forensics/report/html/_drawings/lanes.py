"""Events over time, one lane per rank: numbered dots with their texts in the list below."""

from __future__ import annotations

from itertools import pairwise

from forensics.figure import Lanes
from forensics.report.html._axes import LEFT, RIGHT, WIDTH, Scale, scale, x_axis
from forensics.report.html._elements import Markup, tag
from forensics.report.html._figures import Drawing, svg

_ROW, _TOP, _FOOT, _DOT = 34.0, 12.0, 50.0, 11.0
_STEP = 2 * _DOT + 2
#: So many moments without a time are drawn side by side left of the axis; more are drawn over the last.
_CLOCKLESS = 8
#: A longer list of moments is folded.
_MOST_OPEN = 6


def lanes(figure: Lanes, ident: str) -> Markup:
    """Draw each moment at its time; those that would hide each other are moved apart, in order."""
    last = max((m.at_s for m in figure.moments if m.at_s is not None), default=0.0)
    clockless = max((sum(m.at_s is None for m in figure.moments if m.lane == lane) for lane in figure.lanes), default=0)
    x = scale((0.0, last or 1.0), LEFT + _DOT + _STEP * min(clockless, _CLOCKLESS), WIDTH - RIGHT - _DOT)
    bottom = _TOP + _ROW * len(figure.lanes)
    parts: list[Markup] = []
    for index, lane in enumerate(figure.lanes):
        y = _TOP + (index + 0.5) * _ROW
        line = tag("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y)
        parts += [tag("text", lane, class_="tick", x=LEFT - 10, y=y + 4, text_anchor="end"), line]
    parts += [_dot(figure, n, at) for n, at in enumerate(_apart(figure, x))]
    if last:  # an axis of a single instant says nothing
        parts += x_axis(x, bottom, "seconds after the first")
    return svg(figure, ident, bottom + (_FOOT if last else _TOP), WIDTH, tag("g", parts, aria_hidden="true"))


def told(figure: Lanes) -> Markup:
    items = [
        tag("li", tag("span", m.when, class_="when"), " ", tag("b", m.lane), " ", m.text, " ", tag("code", m.place))
        for m in figure.moments
    ]
    listed = tag("ol", items, class_="moments")
    if len(items) <= _MOST_OPEN:
        return listed
    return tag("details", tag("summary", f"All {len(items)} moments in words"), listed)


def _dot(figure: Lanes, index: int, at: float) -> Markup:
    moment = figure.moments[index]
    y = _TOP + (figure.lanes.index(moment.lane) + 0.5) * _ROW
    kind = "moment" + (" main" if moment.primary else "") + (" undated" if moment.at_s is None else "")
    said = tag("title", f"{moment.when} {moment.text}")
    number = tag("text", str(index + 1), class_="number", x=at, y=y + 4, text_anchor="middle")
    return tag("g", tag("circle", said, cx=at, cy=y, r=_DOT), number, class_=kind)


def _apart(figure: Lanes, x: Scale) -> list[float]:
    """Places of the moments: at their time, in one lane never closer than a dot, pushed back from the right edge."""
    places = [0.0 if m.at_s is None else x.at(m.at_s) for m in figure.moments]
    for lane in figure.lanes:
        own = [i for i, m in enumerate(figure.moments) if m.lane == lane]
        for n, i in enumerate(i for i in own if figure.moments[i].at_s is None):
            places[i] = LEFT + _DOT + _STEP * min(n, _CLOCKLESS - 1)
        _spread(places, [i for i in own if figure.moments[i].at_s is not None], x)
    return places


def _spread(places: list[float], own: list[int], x: Scale) -> None:
    gap = min(_STEP, (x.end - x.start) / max(1, len(own) - 1))
    for a, b in pairwise(own):
        places[b] = max(places[b], places[a] + gap)
    edge = x.end
    for i in reversed(own):
        places[i] = min(places[i], edge)
        edge = places[i] - gap


DRAWING = Drawing(Lanes, lanes, told, place="timeline")
