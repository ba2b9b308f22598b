"""What a run differs in from the baseline it was given: settings, evaluations, throughput."""

from __future__ import annotations

from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown


def differences(shown: Shown) -> Markup:
    """Give the figures of this place."""
    drawn = shown.drawn(shown.figures("differences"))
    return join(tag("h2", "Compared with the baseline"), *drawn) if drawn else join()


SECTION = Section(65, differences)
