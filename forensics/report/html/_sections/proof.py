"""What mends it; then why: evidence, the chain from cause to consequence, likely causes, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import MOST_EVIDENCE, evidence_of


def proof(shown: Shown) -> Markup:
    """Give what mends it, why, the evidence, the chain from cause to consequence, and what to do next."""
    report = shown.report
    lead = say.lead(report)
    parts: list[Markup] = []
    if fixes := report.verdict.actions:
        parts.append(tag("h2", "Fix"))
        parts.append(tag("ol", [tag("li", say.fix(a), *_command(a.command)) for a in fixes]))
    if lead is not None:
        parts.append(tag("h2", "Evidence"))
        parts += [tag("p", lead.because)] if lead.because else []
        parts += [evidence_of(e) for e in lead.evidence[:MOST_EVIDENCE]]
    if len(report.verdict.chain) > 1:
        parts.append(tag("h2", "From cause to consequence"))
        parts.append(tag("ol", [tag("li", link) for link in report.verdict.chain]))
    if lead is not None and lead.likely:
        parts.append(tag("h2", "Likely causes"))
        parts.append(tag("ol", [tag("li", cause) for cause in lead.likely]))
    if steps := say.next_steps(report):
        parts.append(tag("h2", "Next"))
        parts.append(tag("ul", [tag("li", tag("code", s) if say.is_command(s) else s) for s in steps]))
    return join(*parts)


def _command(command: str | None) -> Iterator[Markup]:
    """A command on a line of its own, where an action has one."""
    if command is not None:
        yield tag("pre", command)


SECTION = Section(20, proof, brief=True)
