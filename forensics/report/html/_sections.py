"""The parts of the page that are words: verdict, chain, findings with their evidence, what was read and what not."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.model import Evidence, Finding, Report
from forensics.report import _phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._figures import data_table

_WORDS = {"failed": "FAILED", "healthy": "HEALTHY", "cannot_say": "CANNOT SAY"}
_EVIDENCE, _ISSUES, _FILES = 12, 100, 400


def verdict(report: Report, level: str = "h1") -> Markup:
    """Give the answer and its facts."""
    found = report.verdict
    shape = f" {found.shape.value.replace('_', ' ')}" if found.shape else ""
    word = tag("span", _WORDS[found.outcome.value] + shape, class_=f"outcome {found.outcome.value}")
    facts = [join(tag("dt", label), tag("dd", value)) for label, value in _facts(report)]
    return join(
        tag("p", word, " ", tag("span", report.run, class_="run")), tag(level, found.headline), tag("dl", facts)
    )


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    found = report.verdict
    yield from ((label, text) for label, text in (("onset", say.onset(found.onset)), ("cause", found.cause)) if text)
    if found.culprits:
        yield "culprits", say.ranks(found.culprits)
    yield "confidence", found.confidence.value
    if found.runner_up:
        yield "or else", found.runner_up
    if found.against:
        first = found.against[0]
        yield "against", f"{first.place} {first.quote.strip()}"
    yield "seen", say.seen(report.coverage)
    if unseen := say.unseen(report):
        yield "not seen", "; ".join(unseen)


def proof(report: Report) -> Markup:
    """Give why, the evidence lines, the chain from cause to consequence, and what to do next."""
    lead = say.lead(report)
    parts: list[Markup] = []
    if lead is not None:
        parts.append(tag("h2", "Evidence"))
        parts += [tag("p", lead.because)] if lead.because else []
        parts += [_evidence(e) for e in lead.evidence[:_EVIDENCE]]
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


def findings(report: Report, prefix: str) -> Markup:
    """Give every finding with its evidence, and a link to each figure that shows it."""
    if not report.findings:
        return join()
    return join(tag("h2", "Findings"), *(_finding(f, report, prefix) for f in report.findings))


def _finding(found: Finding, report: Report, prefix: str) -> Markup:
    badges = [
        tag("span", w, class_="badge")
        for w in (found.rule, found.severity.value, f"confidence {found.confidence.value}")
    ]
    links = [
        tag("a", figure.title, href=f"#{prefix}{figure.key}") for figure in report.figures if found.rule in figure.rules
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
        *(_evidence(e) for e in found.evidence[:_EVIDENCE]),
        *_more(len(found.evidence) - _EVIDENCE, "place"),
        class_=f"finding {found.severity.value}",
    )


def _evidence(evidence: Evidence) -> Markup:
    said = evidence.quote.strip() or (f"{evidence.name} = {evidence.value}" if evidence.name else "")
    role = "" if evidence.role.value == "primary" else f" ({evidence.role.value})"
    place = tag("p", tag("code", evidence.place), role)
    return join(place, tag("pre", said)) if said else place


def coverage(report: Report) -> Markup:
    """Give every file with what became of its bytes, what was lost, and which kinds of evidence were absent."""
    files = report.coverage.files
    rows = [
        (
            f.source,
            f.status.value,
            f.format or f.ingester,
            f"{f.read_bytes:,} of {f.size_bytes:,}",
            f"{f.records:,}",
            f.reason,
        )
        for f in files[:_FILES]
    ]
    head = ("file", "status", "format", "bytes read", "records", "reason")
    issues = [
        (f"{i.source}:{i.line}" if i.line is not None else f"{i.source}@{i.byte}", i.code, f"{i.count:,}", i.message)
        for i in report.issues[:_ISSUES]
    ]
    absent = ", ".join(report.coverage.absent)
    return join(
        tag("h2", "What was read"),
        tag("p", say.seen(report.coverage), f"; {say.plural(report.coverage.lost_bytes, 'byte')} lost."),
        *([tag("p", f"Absent, so not checked: {absent}.")] if absent else []),
        *([data_table(head, rows, "Files of the run")] if rows else []),
        *_more(len(files) - _FILES, "file"),
        *(
            [tag("h3", "What could not be read"), data_table(("place", "code", "times", "message"), issues, "Issues")]
            if issues
            else []
        ),
        *_more(len(report.issues) - _ISSUES, "issue"),
        *([tag("p", "Broken plugins: ", "; ".join(report.plugins))] if report.plugins else []),
    )


def _more(count: int, noun: str) -> list[Markup]:
    return [tag("p", f"and {say.plural(count, f'more {noun}')}.", class_="soft")] if count > 0 else []
