"""What the run did not record, why it matters, and how to record it next time."""

from __future__ import annotations

from forensics.action import Gap
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import command


def missing(shown: Shown) -> Markup:
    """Give the signal that is missed most, the others folded."""
    gaps = [_gap(gap) for gap in shown.report.verdict.missing]
    if not gaps:
        return join()
    more = tag("summary", f"and {say.plural(len(gaps) - 1, 'more signal')}")
    folded = tag("details", more, tag("ul", gaps[1:])) if gaps[1:] else join()
    return join(tag("h2", "Record next time"), tag("ul", gaps[:1]), folded)


def _gap(gap: Gap) -> Markup:
    return tag("li", say.record(gap), command(gap.command))


SECTION = Section(62, missing, column="doubts")
