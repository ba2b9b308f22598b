"""The verdict for an issue, a pull request or a chat: Markdown in which no input acts as markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.io.safe_text import for_markdown
from forensics.model import Finding, Report
from forensics.registry import renderer
from forensics.report import _many
from forensics.report import phrases as say
from forensics.report._layout import markdown_facts, markdown_proof
from forensics.report._losses import of_runs, told, words
from forensics.report.style import markdown_table

_EVIDENCE_SHOWN = 5


def render_many(reports: Sequence[Report]) -> Iterator[str]:
    """Write a table by shape, one by failure, and one over all runs."""
    yield from told(_fleet(reports), "markdown", of_runs(reports))


def _fleet(reports: Sequence[Report]) -> Iterator[str]:
    yield f"## {_many.tally(reports)}"
    yield from ("", *markdown_table(_many.SHAPE_HEAD, (row.cells for row in _many.by_shape(reports))))
    if failures := [g for g in _many.groups(reports) if g.seen.runs]:
        yield ""
        head = ("fingerprint", "runs", "first seen", "last seen", "headline")
        seen = ((g.key, _runs(g), g.seen.first, g.seen.last, _headline(g.lead)) for g in failures)
        yield from markdown_table(head, seen)
    yield ""
    head = ("fingerprint", "run", "outcome", "shape", "onset", "headline")
    yield from markdown_table(head, ((g.key, *_cells(r)) for g in _many.groups(reports) for r in g.reports))


def _cells(report: Report) -> tuple[str, ...]:
    verdict = report.verdict
    shape = verdict.shape.value if verdict.shape else _many.NOTHING
    where = say.onset(verdict.onset) or _many.NOTHING
    return for_markdown(report.run, cell=True), verdict.outcome.value, shape, where, _headline(report)


def _headline(report: Report) -> str:
    return for_markdown(report.verdict.headline, cell=True)


def _runs(group: _many.Group) -> str:
    undated = f" ({group.seen.undated} without a time)" if 0 < group.seen.undated < group.seen.runs else ""
    return f"{len(group.reports)}{undated}"


@renderer("markdown", many=render_many)
def render(report: Report) -> Iterator[str]:
    """Write the report as Markdown lines."""
    yield from told(_page(report), "markdown", words(report.coverage))


def _page(report: Report) -> Iterator[str]:
    verdict = report.verdict
    shape = f" ({verdict.shape.value})" if verdict.shape else ""
    yield f"## {verdict.outcome.value.replace('_', ' ').capitalize()}{shape}"
    yield from ("", for_markdown(say.headline(verdict)), "", *markdown_facts(_facts(report)))
    yield from _list("Fix", say.fixes(report))
    if verdict.restart is not None and verdict.restart.command is not None:
        yield from _list("Restart with", (verdict.restart.command,))
    yield from _proof(say.lead(report))
    yield from _list("Chain", verdict.chain, ordered=True)
    yield from _list("Not seen", say.unseen(report))
    yield from _list("Next", (*_checks(report), *say.next_steps(report)))
    yield from _list(
        "Record", tuple(line for gap in verdict.missing for line in (say.record(gap), gap.command) if line)
    )
    yield from _findings(report)


def _checks(report: Report) -> tuple[str, ...]:
    check = say.open_check(report.verdict)
    return () if check is None else (check.text, *((check.command,) if check.command else ()))


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    verdict = report.verdict
    yield "run", report.run
    if where := say.onset(verdict.onset):
        yield "onset", where
    if verdict.culprits:
        yield "culprits", say.ranks(verdict.culprits)
    if words := say.restart(verdict):
        yield "restart", ": ".join(filter(None, (words, say.why_restart(verdict))))
    if verdict.cause:
        yield "cause", say.cause(verdict)
    if words := say.confirm(verdict):
        yield "confirm", words
    yield "confidence", verdict.confidence.value
    if verdict.runner_up:
        yield "or else", verdict.runner_up
    yield "seen", say.seen(report.coverage)


def _proof(finding: Finding | None) -> Iterator[str]:
    if finding is None:
        return
    yield from ("", "### Evidence")
    if finding.because:
        yield from ("", for_markdown(finding.because))
    yield from markdown_proof(finding.evidence[:_EVIDENCE_SHOWN])


def _list(title: str, items: tuple[str, ...], *, ordered: bool = False) -> Iterator[str]:
    if not items:
        return
    yield from ("", f"### {title}", "")
    for index, item in enumerate(items, 1):
        yield f"{f'{index}.' if ordered else '-'} {for_markdown(item)}"


def _findings(report: Report) -> Iterator[str]:
    if report.findings:
        yield from ("", "### Findings", "")
        head = ("rule", "severity", "confidence", "onset", "title")
        yield from markdown_table(head, (tuple(_told(finding)) for finding in report.findings))


def _told(finding: Finding) -> Iterator[str]:
    yield from (finding.rule, finding.severity.value, finding.confidence.value)
    yield from (for_markdown(text, cell=True) if text else "" for text in (say.onset(finding.onset), finding.title))
