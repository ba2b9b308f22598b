"""The figures: the chart that decides, the comparison with the baseline, the time line, and all others."""

from __future__ import annotations

from forensics.figure import Chart
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown


def deciding(shown: Shown) -> Markup:
    """Give the figure that shows the verdict best, and a second one that its lead finding names."""
    return join(*shown.drawn(shown.deciding))


def differences(shown: Shown) -> Markup:
    """Give the figures of this place."""
    drawn = shown.drawn(shown.figures("differences"))
    return join(tag("h2", "Compared with the baseline"), *drawn) if drawn else join()


def timeline(shown: Shown) -> Markup:
    """Give the figures of this place."""
    drawn = shown.drawn(shown.figures("timeline"))
    return join(tag("h2", "What happened when"), *drawn) if drawn else join()


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


SECTIONS = (
    Section(40, deciding, column="picture"),
    Section(65, differences),
    Section(70, timeline),
    Section(80, charts),
)
