"""The verdict as JUnit XML: one test case per finding; an error fails, a warning is skipped, a note passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from forensics.model import Finding, Outcome, Report, Severity
from forensics.registry import renderer
from forensics.report import phrases as say
from forensics.report._losses import told, words
from forensics.report._xml import xml_line, xml_lines


def render_many(reports: Sequence[Report]) -> Iterator[str]:
    """Write several reports as one document: one suite for each run."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield "<testsuites>"
    for report in reports:
        yield from suite(report)
    yield "</testsuites>"


@renderer("junit", many=render_many)
def render(report: Report) -> Iterator[str]:
    """Write the report as one document."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield from suite(report)


def suite(report: Report) -> Iterator[str]:
    """Write one run as a test suite: the verdict, then the findings."""
    yield from told(_suite(report), "junit", words(report.coverage))


def _suite(report: Report) -> Iterator[str]:
    failed = report.verdict.outcome is Outcome.FAILED
    unsure = report.verdict.outcome in {Outcome.SUSPECT, Outcome.CANNOT_SAY}
    failures = failed + sum(f.severity is Severity.ERROR for f in report.findings)
    skipped = unsure + sum(f.severity is Severity.WARNING for f in report.findings)
    counts = f'tests="{1 + len(report.findings)}" failures="{failures}" errors="0" skipped="{skipped}"'
    yield f"<testsuite name={_quoted(xml_line(report.run))} {counts}>"
    said = xml_lines([*report.verdict.chain, *say.unseen(report), *say.fixes(report), *say.next_steps(report)])
    yield from _case("verdict", report.verdict.headline, said, "failure" if failed else "skipped" if unsure else "")
    kinds = {Severity.ERROR: "failure", Severity.WARNING: "skipped", Severity.INFO: ""}
    for finding in report.findings:
        yield from _case(
            f"{finding.rule} {finding.shape.value}", finding.title, _proof(finding), kinds[finding.severity]
        )
    yield "</testsuite>"


def _case(name: str, headline: str, details: str, kind: str) -> Iterator[str]:
    yield f'  <testcase classname="forensics.triage" name={_quoted(xml_line(name))}>'
    if kind == "failure":
        yield f"    <failure message={_quoted(xml_line(headline))}>{escape(details)}</failure>"
    elif kind == "skipped":
        yield f"    <skipped message={_quoted(xml_line(headline))}/>"
        yield f"    <system-out>{escape(details)}</system-out>"
    else:
        yield f"    <system-out>{escape(xml_line(headline))}\n{escape(details)}</system-out>"
    yield "  </testcase>"


def _proof(finding: Finding) -> str:
    evidence = (f"{e.place}: {e.quote.strip()}" if e.quote.strip() else e.place for e in finding.evidence)
    return xml_lines([text for text in (finding.because, *evidence) if text])


def _quoted(text: str) -> str:
    """A value of an attribute; `xml.sax.saxutils` would do the same, and load a network client."""
    return f'"{escape(text)}"'
