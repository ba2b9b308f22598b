"""The checklist of an engineer for this failure: what the run answers already, what it does not, what is next."""

from __future__ import annotations

from forensics.action import Check
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import command

_SIGNS = {"done": "✓ done", "missing": "? not recorded", "next": "→ to do"}


def playbook(shown: Shown) -> Markup:
    """Give every check with its state, folded."""
    checks = shown.report.verdict.playbook
    if not checks:
        return join()
    counts = [(sum(c.state == state for c in checks), state) for state in _SIGNS]
    said = ", ".join(f"{count} {_SIGNS[state].partition(' ')[2]}" for count, state in counts if count)
    listed = tag("ul", [_check(check) for check in checks], class_="checks")
    return join(tag("h2", "Checklist"), tag("details", tag("summary", said), listed))


def _check(check: Check) -> Markup:
    answer = check.evidence or (", ".join(check.signals) if check.state == "missing" else "")
    after = [tag("span", f" {answer}", class_="soft")] if answer else []
    return tag(
        "li",
        tag("b", _SIGNS[check.state], class_=check.state),
        f" {check.text}",
        *after,
        command(check.command if check.state == "next" else None),
    )


SECTION = Section(64, playbook, column="doubts")
