"""What mends it."""

from __future__ import annotations

from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import command


def fix(shown: Shown) -> Markup:
    """Give the actions, each with its command."""
    actions = shown.report.verdict.actions
    items = [tag("li", say.fix(a), command(a.command)) for a in actions]
    return tag("div", tag("h2", "Fix"), tag("ol", items), class_="fix") if items else join()


SECTION = Section(30, fix, brief=True, column="answer")
