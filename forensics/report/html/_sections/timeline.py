"""The time line over ranks: what happened when."""

from __future__ import annotations

from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown


def timeline(shown: Shown) -> Markup:
    """Give the figures of this place."""
    drawn = shown.drawn(shown.figures("timeline"))
    return join(tag("h2", "What happened when"), *drawn) if drawn else join()


SECTION = Section(70, timeline)
