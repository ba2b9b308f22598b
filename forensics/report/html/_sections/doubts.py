"""Evidence against the answer, gaps in the records of the run, and the checklist for this failure."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.action import Check
from forensics.model import Report
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, definitions, join, some, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import command

_SIGNS = {"done": "✓ done", "missing": "? not recorded", "next": "→ to do"}


def doubts(shown: Shown) -> Markup:
    report = shown.report
    steps = [tag("li", tag("code", s) if say.is_command(s) else s) for s in say.next_steps(report)]
    after = join(tag("h2", "More"), tag("ul", steps)) if steps else join()
    return join(tag("h2", "Doubts and gaps"), definitions(_facts(report)), after)


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    found = report.verdict
    if found.runner_up:
        yield "or else", found.runner_up
    if found.against:
        first = found.against[0]
        yield "against", f"{first.place} {first.quote.strip()}"
    yield "seen", say.seen(report.coverage)
    if unseen := say.unseen(report):
        yield "not seen", "; ".join(unseen)


def missing(shown: Shown) -> Markup:
    gaps = [tag("li", say.record(gap), command(gap.command)) for gap in shown.report.verdict.missing]
    if not gaps:
        return join()
    more = tag("summary", f"and {say.plural(len(gaps) - 1, 'more signal')}")
    folded = tag("details", more, tag("ul", gaps[1:])) if gaps[1:] else join()
    return join(tag("h2", "Record next time"), tag("ul", gaps[:1]), folded)


def playbook(shown: Shown) -> Markup:
    checks = shown.report.verdict.playbook
    if not checks:
        return join()
    counts = [(sum(c.state == state for c in checks), state) for state in _SIGNS]
    said = ", ".join(f"{count} {_SIGNS[state].partition(' ')[2]}" for count, state in counts if count)
    listed = tag("ul", [_check(check) for check in checks], class_="checks")
    return join(tag("h2", "Checklist"), tag("details", tag("summary", said), listed))


def _check(check: Check) -> Markup:
    answer = check.evidence or (", ".join(check.signals) if check.state == "missing" else "")
    after = some("span", f" {answer}" if answer else "", class_="soft")
    todo = command(check.command if check.state == "next" else None)
    return tag("li", tag("b", _SIGNS[check.state], class_=check.state), f" {check.text}", after, todo)


SECTIONS = (
    Section(60, doubts, brief=True, column="doubts"),
    Section(62, missing, column="doubts"),
    Section(64, playbook, column="doubts"),
)
