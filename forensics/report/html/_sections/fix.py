"""What mends it, and from which checkpoint the run can go on."""

from __future__ import annotations

from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown


def fix(shown: Shown) -> Markup:
    """Give the actions, each with its command, and the checkpoint to go back to."""
    verdict = shown.report.verdict
    items = [tag("li", say.fix(a), tag("pre", a.command) if a.command else "") for a in verdict.actions]
    actions = [tag("h2", "Fix"), tag("ol", items)] if items else []
    saved = verdict.checkpoint
    back = tag("dl", tag("dt", "checkpoint"), tag("dd", say.checkpoint(saved))) if saved is not None else join()
    return tag("div", *actions, back, class_="fix") if actions or saved is not None else join()


SECTION = Section(30, fix, brief=True, column="answer")
