"""The charts: one for each finding that has something to draw, and those that every run has."""

from __future__ import annotations

from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown


def charts(shown: Shown) -> Markup:
    """Give the figures of this place."""
    drawn = shown.figures("charts")
    return join(tag("h2", "Charts"), *drawn) if drawn else join()


SECTION = Section(50, charts)
