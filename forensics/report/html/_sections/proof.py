"""Why: the reason, the evidence, the chain from cause to consequence, and likely causes."""

from __future__ import annotations

from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import MOST_EVIDENCE, more, proof_of


def proof(shown: Shown) -> Markup:
    """Give the reason, the evidence, the chain from cause to consequence, and likely causes."""
    report = shown.report
    lead = say.lead(report)
    parts: list[Markup] = []
    if lead is not None:
        parts.append(tag("h2", "Evidence"))
        parts += [tag("p", lead.because)] if lead.because else []
        parts += proof_of(lead.evidence[:MOST_EVIDENCE])
        parts += more(len(lead.evidence) - MOST_EVIDENCE, "place")
    if len(report.verdict.chain) > 1:
        parts.append(tag("h2", "From cause to consequence"))
        parts.append(tag("ol", [tag("li", link) for link in report.verdict.chain]))
    if lead is not None and lead.likely:
        parts.append(tag("h2", "Likely causes"))
        parts.append(tag("ol", [tag("li", cause) for cause in lead.likely]))
    return join(*parts)


SECTION = Section(50, proof, brief=True, column="why")
