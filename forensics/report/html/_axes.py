"""From values to places in a drawing, and round numbers to write beside the axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite, log10

from msgspec import Struct

from forensics.figures import powers, rounds
from forensics.report.html._elements import Markup, tag

_ROUNDING = 1e-6
#: Width of a letter in a small drawing, where letters are largest.
LETTER = 12.8
WIDTH, LEFT, RIGHT, BOTTOM = 720.0, 84.0, 18.0, 52.0
#: Round numbers from here on are written with the letter of their size.
_LARGE = 1e5
#: Values with more decimals are written as powers of ten.
_DECIMALS = 4
_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Scale(Struct, frozen=True):
    """Values from `low` to `high` at places from `start` to `end`, with its round values; `log` for powers of ten."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    ticks: tuple[float, ...] = ()

    def at(self, value: float) -> float:
        """Give the place of a value; values outside the axis are drawn at its edge."""
        low, high, v = self._in(self.low), self._in(self.high), self._in(value)
        share = (v - low) / (high - low) if high > low else 0.5
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def _in(self, value: float) -> float:
        return log10(max(value, 1e-300)) if self.log else value


def scale(span: tuple[float, float], start: float, end: float, *, log: bool = False, whole: bool = False) -> Scale:
    """Make a scale with five to eight round values on it, integers where `whole`; it widens to hold them."""
    low, high = span
    ticks = powers(low, high) if log else rounds(low, high, whole=whole)
    return Scale(min(low, *ticks), max(high, *ticks), start, end, log, ticks)


def around(values: Iterable[float], start: float, end: float, *, log: bool = False, room: float = 0.05) -> Scale:
    """Make the scale that holds all finite values, with `room` of the span on both sides."""
    finite = [v for v in values if isfinite(v) and abs(v) < 1e300 and (v > 0 or not log)]
    if not finite:
        return scale((1.0, 10.0) if log else (0.0, 1.0), start, end, log=log)
    low, high = min(finite), max(finite)
    if log:
        return scale((low / 1.2, high * 1.2), start, end, log=True)
    # values that differ by rounding only are one value
    flat = high - low <= _ROUNDING * max(abs(low), abs(high))
    if flat:  # one value, and one number beside it
        pad = abs(low) * 0.1 or 0.5
        return Scale(low - pad, high + pad, start, end, ticks=(low,))
    pad, whole = (high - low) * room, not room and all(v == int(v) for v in finite)
    return scale((low - pad, high + pad), start, end, whole=whole)


def short(value: float) -> str:
    """Give a number in few characters: `12,000`, `0.25`, `1.5M`, `1.2e-7`."""
    if value == 0:
        return "0"
    size = abs(value)
    if 1000 <= size < _LARGE:
        return f"{value:,.0f}"
    if size < 1e-2 or size >= 1e15:
        digits, _, power = f"{value:.1e}".partition("e")
        return f"{digits.removesuffix('.0')}e{int(power)}"
    unit, letter = next(((unit, letter) for unit, letter in _SIZES if size >= max(unit, _LARGE)), (1.0, ""))
    return f"{value / unit:.4g}{letter}"


def labels(scale: Scale) -> list[str]:
    """Give the words of the round values of an axis: as many decimals for each as the finest of them needs."""
    ticks = scale.ticks
    if scale.log or len(ticks) == 1 or max(map(abs, ticks)) >= _LARGE:
        return [short(v) for v in ticks]
    exact = (
        n
        for n in range(_DECIMALS + 1)
        if all(abs(round(v, n) - v) <= _ROUNDING * abs(ticks[1] - ticks[0]) for v in ticks)
    )
    decimals = next(exact, None)
    return [short(v) if decimals is None else f"{v:,.{decimals}f}" for v in ticks]


def x_axis(x: Scale, bottom: float, label: str, ticks: Sequence[tuple[float, str]] = ()) -> list[Markup]:
    """Draw an axis below a drawing with its name; `ticks` are places and words, else the scale's own."""
    parts: list[Markup] = []
    for index, (at, said) in enumerate(ticks or [(x.at(v), said) for v, said in zip(x.ticks, labels(x), strict=True)]):
        # every other number makes room for the letters of a small drawing
        kind = " odd" if index % 2 else ""
        parts.append(tag("line", class_="axis", x1=at, x2=at, y1=bottom, y2=bottom + 5))
        half = LETTER / 2 * len(said)
        end = at + half > x.end + RIGHT
        place = x.end + RIGHT - 2 if end else at
        anchor = "end" if end else "middle"
        parts.append(tag("text", said, class_=f"tick{kind}", x=place, y=bottom + 22, text_anchor=anchor))
    parts.append(tag("line", class_="axis", x1=x.start, x2=x.end, y1=bottom, y2=bottom))
    parts.append(tag("text", label, class_="name", x=x.end, y=bottom + 44, text_anchor="end"))
    return parts


def frame(x: Scale, y: Scale, x_label: str, y_label: str) -> Markup:
    parts: list[Markup] = []
    for index, (value, said) in enumerate(zip(y.ticks, labels(y), strict=True)):
        at, kind = y.at(value), " odd" if index % 2 else ""
        parts.append(tag("line", class_="grid", x1=x.start, x2=x.end, y1=at, y2=at))
        parts.append(tag("text", said, class_=f"tick{kind}", x=x.start - 8, y=at + 4, text_anchor="end"))
    parts += x_axis(x, y.start, x_label)
    parts.append(tag("text", y_label, class_="name", x=4, y=18))
    return tag("g", parts, aria_hidden="true")
