"""Why: the reason, the evidence, the chain from cause to consequence; and every finding with its evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from forensics.model import Finding, Report
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, some, tag
from forensics.report.html._figures import drawing_of
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import MOST_EVIDENCE, proof_of


def proof(shown: Shown) -> Markup:
    lead, chain = say.lead(shown.report), shown.report.verdict.chain
    proven = join(tag("h2", "Evidence"), some("p", lead.because), proof_of(lead.evidence)) if lead is not None else ""
    links = _listed("From cause to consequence", chain if len(chain) > 1 else ())
    told = say.cause(shown.report.verdict)
    likely = (one for one in (lead.likely if lead is not None else ()) if not told.startswith(one.rstrip(".")))
    return join(proven, links, _listed("Likely causes", likely))


def _listed(title: str, items: Iterable[str]) -> Markup:
    listed = some("ol", [tag("li", item) for item in items])
    return join(tag("h2", title), listed) if listed else listed


def findings(shown: Shown) -> Markup:
    """Give every finding, folded: its words, then the rule; inside it the evidence, and links to its figures."""
    report, prefix = shown.report, shown.prefix
    if not report.findings:
        return join()
    lead = say.lead(report)
    told = {(e.place, e.quote) for e in lead.evidence[:MOST_EVIDENCE]} if lead is not None else set[tuple[str, str]]()
    return join(tag("h2", "Findings"), *(_finding(f, report, prefix, told) for f in report.findings))


def _finding(found: Finding, report: Report, prefix: str, told: Collection[tuple[str, str]]) -> Markup:
    rule = f"{found.severity.value}, confidence {found.confidence.value}, {found.rule}"
    drawn = (figure for figure in report.figures if found.rule in figure.rules and drawing_of(figure) is not None)
    links = [
        join(", " if n else "", tag("a", figure.title, href=f"#{prefix}{figure.key}")) for n, figure in enumerate(drawn)
    ]
    numbers = ", ".join(f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in found.numbers.items())
    return tag(
        "details",
        tag("summary", tag("b", found.title), " ", tag("span", rule, class_="soft")),
        some("p", say.onset(found.onset), class_="soft"),
        some("p", found.because),
        tag("p", "Charts: ", links) if links else "",
        some("p", numbers, class_="soft"),
        proof_of(found.evidence, told),
        class_=f"finding {found.severity.value}",
    )


SECTIONS = (Section(50, proof, brief=True, column="why"), Section(90, findings))
