"""Why: the reason, the evidence, the chain from cause to consequence; and every finding with its evidence."""

from __future__ import annotations

from collections.abc import Collection

from forensics.model import Finding, Report
from forensics.report import phrases as say
from forensics.report.html._drawing import drawing_of
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


def findings(shown: Shown) -> Markup:
    """Give every finding, folded: its words, then the rule; inside it the evidence, and links to what shows it."""
    report, prefix = shown.report, shown.prefix
    if not report.findings:
        return join()
    lead = say.lead(report)
    told = {(e.place, e.quote) for e in lead.evidence[:MOST_EVIDENCE]} if lead is not None else set[tuple[str, str]]()
    return join(tag("h2", "Findings"), *(_finding(f, report, prefix, told) for f in report.findings))


def _finding(found: Finding, report: Report, prefix: str, told: Collection[tuple[str, str]]) -> Markup:
    rule = f"{found.severity.value}, confidence {found.confidence.value}, {found.rule}"
    links = [
        tag("a", figure.title, href=f"#{prefix}{figure.key}")
        for figure in report.figures
        if found.rule in figure.rules and drawing_of(figure) is not None
    ]
    listed = [join(", " if n else "", link) for n, link in enumerate(links)]
    shown = [tag("p", "Charts: ", *listed)] if links else []
    numbers = ", ".join(f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in found.numbers.items())
    where = say.onset(found.onset)
    return tag(
        "details",
        tag("summary", tag("b", found.title), " ", tag("span", rule, class_="soft")),
        *([tag("p", where, class_="soft")] if where else []),
        *([tag("p", found.because)] if found.because else []),
        *shown,
        *([tag("p", numbers, class_="soft")] if numbers else []),
        *proof_of(found.evidence[:MOST_EVIDENCE], told),
        *more(len(found.evidence) - MOST_EVIDENCE, "place"),
        class_=f"finding {found.severity.value}",
    )


SECTIONS = (Section(50, proof, brief=True, column="why"), Section(90, findings))
