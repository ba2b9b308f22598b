"""Every finding with its evidence, and a link to each figure that shows it."""

from __future__ import annotations

from forensics.model import Finding, Report
from forensics.report import phrases as say
from forensics.report.html._drawing import drawing_of
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import MOST_EVIDENCE, evidence_of, more


def findings(shown: Shown) -> Markup:
    """Give every finding with its evidence, and a link to each figure that shows it."""
    report, prefix = shown.report, shown.prefix
    if not report.findings:
        return join()
    return join(tag("h2", "Findings"), *(_finding(f, report, prefix) for f in report.findings))


def _finding(found: Finding, report: Report, prefix: str) -> Markup:
    badges = [
        tag("span", w, class_="badge")
        for w in (found.rule, found.severity.value, f"confidence {found.confidence.value}")
    ]
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
        "section",
        tag("h3", badges, found.title),
        *([tag("p", where, class_="soft")] if where else []),
        *([tag("p", found.because)] if found.because else []),
        *shown,
        *([tag("p", numbers, class_="soft")] if numbers else []),
        *(evidence_of(e) for e in found.evidence[:MOST_EVIDENCE]),
        *more(len(found.evidence) - MOST_EVIDENCE, "place"),
        class_=f"finding {found.severity.value}",
    )


SECTION = Section(60, findings)
