"""The figures: the chart that decides, the comparison with the baseline, the time line, and all others."""

from __future__ import annotations

from forensics.figure import Chart
from forensics.report.html._elements import Markup, join, some, tag
from forensics.report.html._section import Section, Shown


def deciding(shown: Shown) -> Markup:
    return join(shown.drawn(shown.deciding))


def differences(shown: Shown) -> Markup:
    return _titled("Compared with the baseline", shown.drawn(shown.figures("differences")))


def timeline(shown: Shown) -> Markup:
    return _titled("What happened when", shown.drawn(shown.figures("timeline")))


def charts(shown: Shown) -> Markup:
    every = shown.figures("charts")
    small = [f for f in every if isinstance(f, Chart)]
    large = [f for f in every if not isinstance(f, Chart)]
    above = _titled("Ranks, memory and time", some("div", shown.drawn(large), class_="large"))
    return join(above, _titled("Metrics", some("div", shown.drawn(small), class_="small")))


def _titled(title: str, drawn: str | list[Markup]) -> Markup:
    return join(tag("h2", title), drawn) if drawn else join()


SECTIONS = (
    Section(40, deciding, column="picture"),
    Section(65, differences),
    Section(70, timeline),
    Section(80, charts),
)
