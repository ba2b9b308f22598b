"""The verdict as JUnit XML: one test case per finding; an error fails, a warning is skipped, a note passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from forensics.model import Finding, Outcome, Report, Severity
from forensics.registry import renderer
from forensics.report import phrases as say
from forensics.report._losses import told, words
from forensics.report._xml import HEAD, case, xml_attribute

_KINDS: dict[Severity, Literal["failure", "skipped", ""]] = {
    Severity.ERROR: "failure",
    Severity.WARNING: "skipped",
    Severity.INFO: "",
}


def render_many(reports: Sequence[Report]) -> Iterator[str]:
    """Write several reports as one document: one suite for each run."""
    yield from (HEAD, "<testsuites>")
    for report in reports:
        yield from suite(report)
    yield "</testsuites>"


@renderer("junit", many=render_many)
def render(report: Report) -> Iterator[str]:
    """Write the report as one document."""
    yield HEAD
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
    yield f"<testsuite name={xml_attribute(report.run)} {counts}>"
    said = (*report.verdict.chain, *say.unseen(report), *say.fixes(report), *say.next_steps(report))
    kind = "failure" if failed else "skipped" if unsure else ""
    yield from case("triage", "verdict", report.verdict.headline, said, kind)
    for found in report.findings:
        name = f"{found.rule} {found.shape.value}"
        yield from case("triage", name, found.title, _proof(found), _KINDS[found.severity])
    yield "</testsuite>"


def _proof(finding: Finding) -> Iterator[str]:
    evidence = (f"{e.place}: {e.quote.strip()}" if e.quote.strip() else e.place for e in finding.evidence)
    return filter(None, (finding.because, *evidence))
