"""Every other figure: the large ones in two columns, then each other metric of the run once, small."""

from __future__ import annotations

from forensics.figure import Chart
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown


def charts(shown: Shown) -> Markup:
    """Give the figures of this place."""
    every = shown.figures("charts")
    small = [f for f in every if isinstance(f, Chart)]
    large = [f for f in every if not isinstance(f, Chart)]
    parts: list[Markup] = []
    if large:
        parts += [tag("h2", "Ranks, memory and time"), tag("div", shown.drawn(large), class_="large")]
    if small:
        parts += [tag("h2", "Metrics"), tag("div", shown.drawn(small), class_="small")]
    return join(*parts)


SECTION = Section(80, charts)
