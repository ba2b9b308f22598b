"""The answer in one line, and what was lost of the input."""

from __future__ import annotations

from forensics.report._losses import words
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import outcome


def verdict(shown: Shown) -> Markup:
    """Give the outcome, the run and the headline."""
    report = shown.report
    said = words(report.coverage)
    gap = tag("p", tag("strong", "Lost: "), said) if said else ""
    head = tag("p", outcome(report.verdict), " ", tag("span", report.run, class_="run"))
    return join(head, tag(shown.level, report.verdict.headline), gap)


SECTION = Section(10, verdict, brief=True, column="head")
