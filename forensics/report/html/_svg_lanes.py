"""What happened when, one lane a rank: numbered dots whose texts stand in the list below."""

from __future__ import annotations

from forensics.figure import Lanes
from forensics.report.html._axes import LEFT, RIGHT, WIDTH, Scale, short
from forensics.report.html._elements import Markup, tag

_ROW, _TOP, _FOOT, _DOT = 34.0, 12.0, 46.0, 11.0


def lanes(figure: Lanes, ident: str) -> Markup:
    """Draw each moment at its time; those that would hide each other are moved to the right, in order."""
    last = max((m.at_s for m in figure.moments), default=0.0)
    x = Scale(0.0, last or 1.0, LEFT + _DOT, WIDTH - RIGHT - _DOT)
    bottom = _TOP + _ROW * len(figure.lanes)
    parts: list[Markup] = []
    for index, lane in enumerate(figure.lanes):
        y = _TOP + (index + 0.5) * _ROW
        parts.append(tag("text", lane, class_="tick", x=LEFT - 10, y=y + 4, text_anchor="end"))
        parts.append(tag("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y))
    for number, (moment, at) in enumerate(zip(figure.moments, _apart(figure, x), strict=True), 1):
        y = _TOP + (figure.lanes.index(moment.lane) + 0.5) * _ROW
        parts.append(
            tag(
                "circle",
                tag("title", f"{moment.when} {moment.text}"),
                class_="moment main" if moment.primary else "moment",
                cx=at,
                cy=y,
                r=_DOT,
            )
        )
        parts.append(tag("text", str(number), class_="number", x=at, y=y + 4, text_anchor="middle"))
    for value in x.ticks():
        parts.append(tag("text", short(value), class_="tick", x=x.at(value), y=bottom + 18, text_anchor="middle"))
    parts.append(
        tag("text", "seconds after the first", class_="name", x=WIDTH - RIGHT, y=bottom + 40, text_anchor="end")
    )
    return tag(
        "svg",
        tag("title", figure.title, id=f"{ident}-t"),
        tag("desc", figure.caption, id=f"{ident}-d"),
        tag("g", parts, aria_hidden="true"),
        class_="chart",
        viewBox=f"0 0 {WIDTH:.0f} {bottom + _FOOT:.0f}",
        role="img",
        aria_labelledby=f"{ident}-t {ident}-d",
    )


def told(figure: Lanes) -> Markup:
    """Say each moment in words, in the order of time."""
    return tag(
        "ol",
        [
            tag("li", tag("span", m.when, class_="when"), " ", tag("b", m.lane), " ", m.text, " ", tag("code", m.place))
            for m in figure.moments
        ],
        class_="moments",
    )


def _apart(figure: Lanes, x: Scale) -> list[float]:
    """Places of the moments: at their time, but in one lane never closer than a dot; from the right edge pushed back."""
    places = [x.at(m.at_s) for m in figure.moments]
    gap = min(2 * _DOT + 2, (x.end - x.start) / max(1, len(places) - 1))
    for lane in figure.lanes:
        own = [i for i, m in enumerate(figure.moments) if m.lane == lane]
        for a, b in zip(own, own[1:], strict=False):
            places[b] = max(places[b], places[a] + gap)
        edge = x.end
        for i in reversed(own):
            places[i] = min(places[i], edge)
            edge = places[i] - gap
    return places
