"""From values to places in a drawing, and round numbers to write beside the axes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from forensics.report.html._elements import Markup, tag

_ROUNDING = 1e-6
#: Width of a digit on a small screen, where letters are largest.
_LETTER = 12.0
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 720.0, 100.0, 18.0, 34.0, 52.0


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` at places from `start` to `end`; `log` for powers of ten."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Give the place of a value; what lies outside stays at the edge."""
        low, high, v = self._in(self.low), self._in(self.high), self._in(value)
        share = (v - low) / (high - low) if high > low else 0.5
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self, most: int = 5) -> tuple[float, ...]:
        """Give at most about `most` round values inside."""
        if self.log:
            first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
            every = max(1, ceil((last - first + 1) / most))
            powers = tuple(10.0**p for p in range(first, last + 1, every))
            return powers if len(powers) > 1 else (self.low, self.high)
        span = self.high - self.low
        if span <= 0 or not isfinite(span):
            return (self.low,)
        rough = span / most
        unit = 10.0 ** floor(log10(rough))
        step = next((m * unit for m in (1, 2, 2.5, 5) if m * unit >= rough), 10 * unit)
        first = ceil(self.low / step - 1e-9)
        count = int((self.high - first * step) / step + 1e-9) + 1
        return tuple((first + i) * step for i in range(min(count, 2 * most)))

    def _in(self, value: float) -> float:
        return log10(max(value, 1e-300)) if self.log else value


def around(values: Iterable[float], start: float, end: float, *, log: bool = False, room: float = 0.05) -> Scale:
    """Make the scale that holds all finite values, with `room` of the span on both sides."""
    finite = [v for v in values if isfinite(v) and abs(v) < 1e300 and (v > 0 or not log)]
    if not finite:
        return Scale(1.0 if log else 0.0, 10.0 if log else 1.0, start, end, log)
    low, high = min(finite), max(finite)
    if log:
        return Scale(low / 1.2, high * 1.2, start, end, log)
    # values that differ by rounding only are one value
    flat = high - low <= _ROUNDING * max(abs(low), abs(high))
    pad = (abs(low) * 0.1 or 0.5) if flat else (high - low) * room
    return Scale(low - pad, high + pad, start, end)


def short(value: float) -> str:
    """Give a number in few characters: `12,000`, `0.25`, `1.2e-7`."""
    if value == 0:
        return "0"
    size = abs(value)
    if 1000 <= size < 1e7:
        return f"{value:,.0f}"
    if size >= 1e7 or size < 1e-2:
        return f"{value:.2g}".replace("e-0", "e-").replace("e+0", "e+")
    return f"{value:.4g}"


def x_tick(said: str, at: float, y: float, end: float) -> Markup:
    """Write a number below an axis, pushed left where half of it would not fit."""
    half = _LETTER / 2 * len(said)
    if at + half > end + RIGHT:
        return tag("text", said, class_="tick", x=end + RIGHT - 2, y=y, text_anchor="end")
    return tag("text", said, class_="tick", x=at, y=y, text_anchor="middle")


def frame(x: Scale, y: Scale, x_label: str, y_label: str) -> Markup:
    """Draw the grid, the numbers and the names of two axes."""
    bottom, parts = y.start, list[Markup]()
    for value in y.ticks():
        at = y.at(value)
        parts.append(tag("line", class_="grid", x1=x.start, x2=x.end, y1=at, y2=at))
        parts.append(tag("text", short(value), class_="tick", x=x.start - 8, y=at + 4, text_anchor="end"))
    for value in x.ticks():
        at = x.at(value)
        parts.append(tag("line", class_="axis", x1=at, x2=at, y1=bottom, y2=bottom + 5))
        parts.append(x_tick(short(value), at, bottom + 22, x.end))
    parts.append(tag("line", class_="axis", x1=x.start, x2=x.end, y1=bottom, y2=bottom))
    parts.append(tag("text", x_label, class_="name", x=x.end, y=bottom + 44, text_anchor="end"))
    parts.append(tag("text", y_label, class_="name", x=4, y=18))
    return tag("g", parts, aria_hidden="true")
