"""The verdict as workflow commands: an annotation at the line of each finding, at most ten, the worst first.

A runner takes `::` at the start of a line and `##[` anywhere in it for a command, so no text of an input begins a line
and both are broken up; a step shows at most ten annotations of one kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest

from forensics.compare.model import joined
from forensics.io.safe_text import for_github, for_github_property
from forensics.model import Evidence, Finding, Outcome, Report, Severity
from forensics.registry import renderer
from forensics.report import phrases as say
from forensics.report._losses import told, words

#: So many annotations of one kind a step shows.
MOST = 10
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render_many(reports: Sequence[Report]) -> Iterator[str]:
    """Write the annotations of all runs, no more than a step shows, in turn from each run."""
    every = [list(render(report)) for report in reports]
    yield from islice((line for row in zip_longest(*every) for line in row if line is not None), MOST)


@renderer("github", many=render_many)
def render(report: Report) -> Iterator[str]:
    """Write one command per finding, the verdict's first; one notice without findings."""
    said = words(report.coverage)
    yield from islice(told(_commands(report), "github", said), MOST)


def _commands(report: Report) -> Iterator[str]:
    lead = say.lead(report)
    told = sorted(report.findings, key=lambda f: (f is not lead, -f.severity.rank, -f.confidence.rank))
    if not told or report.verdict.outcome is Outcome.CANNOT_SAY:
        level = "notice" if report.verdict.outcome is Outcome.HEALTHY else "warning"
        title = f"forensics: {report.verdict.outcome.value.replace('_', ' ')}"
        yield f"::{level} title={for_github_property(title)}::{for_github(report.verdict.headline)}"
    room = MOST if told and report.verdict.outcome is not Outcome.CANNOT_SAY else MOST - 1
    for finding in told[:room]:
        yield _command(finding, report, first=finding is lead)


def _command(finding: Finding, report: Report, *, first: bool) -> str:
    evidence = finding.evidence[0]
    title = f"forensics: {finding.rule} {finding.shape.value}"
    properties = [*placed(evidence, report.run), f"title={for_github_property(title)}"]
    said = [finding.title, finding.because, evidence.quote.strip()]
    if first:
        said += ["fix: " + step for step in say.fixes(report)[:3]]
        said += ["next: " + step for step in say.next_steps(report)[:3]]
    message = "\n".join(text for text in said if text)
    return f"::{_LEVELS[finding.severity]} {','.join(properties)}::{for_github(message)}"


def placed(evidence: Evidence, run: str) -> Iterator[str]:
    """Give the properties that put an annotation at a place of a run."""
    yield f"file={for_github_property(joined(run, evidence.source))}"
    if evidence.locator.line is not None:
        yield f"line={evidence.locator.line}"
