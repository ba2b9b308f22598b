"""The chart that decides, beside the answer."""

from __future__ import annotations

from forensics.report.html._elements import Markup, join
from forensics.report.html._section import Section, Shown


def deciding(shown: Shown) -> Markup:
    """Give the figure that shows the verdict best, and a second one that its lead finding names."""
    return join(*shown.drawn(shown.deciding))


SECTION = Section(40, deciding, column="picture")
