"""Several runs at once: one line each, those that failed the same way together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice, zip_longest

from forensics.io.safe_text import for_markdown, printable
from forensics.model import Outcome, Report
from forensics.report import _phrases as say
from forensics.report import github as _github
from forensics.report import junit as _junit
from forensics.report._payload import document
from forensics.report._style import PLAIN, Style
from forensics.report.json_v1 import encoded
from forensics.report.text import paint_outcome

_NOTHING = "-"


def fingerprint(report: Report) -> str:
    """Give what is equal for runs that failed the same way; `-` for a run that did not fail."""
    finding = say.lead(report)
    return finding.fingerprint if finding is not None and report.verdict.outcome is Outcome.FAILED else _NOTHING


def grouped(reports: Sequence[Report]) -> list[tuple[str, list[Report]]]:
    """Group runs by fingerprint, the largest group first; within a group runs stay in the order they were given."""

    def kind(report: Report) -> tuple[str, str, str]:
        key, verdict = fingerprint(report), report.verdict
        return key, verdict.outcome.value, verdict.headline if key == _NOTHING else ""

    groups = [(key[0], list(same)) for key, same in groupby(sorted(reports, key=kind), key=kind)]
    return sorted(groups, key=lambda group: (group[0] == _NOTHING, -len(group[1]), group[0]))


def text(reports: Sequence[Report], style: Style = PLAIN) -> Iterator[str]:
    """Write one headline for each group, and below it one line for each run."""
    for key, same in grouped(reports):
        lead = same[0].verdict
        shape = f"  {lead.shape.value}" if lead.shape else ""
        count = say.plural(len(same), "run")
        yield f"{paint_outcome(lead.outcome, style)}{shape}  {count}  {style.paint(key, 'dim')}"
        yield from style.field("", printable(lead.headline), "bold", most=2)
        for report in same:
            where = say.onset(report.verdict.onset)
            yield f"  {printable(report.run)}" + (f"  {where}" if where else "")


def markdown(reports: Sequence[Report]) -> Iterator[str]:
    """Write one table over all runs."""
    yield "| fingerprint | run | outcome | shape | onset | headline |"
    yield "|---|---|---|---|---|---|"
    for key, same in grouped(reports):
        for report in same:
            verdict = report.verdict
            where = say.onset(verdict.onset) or _NOTHING
            shape = verdict.shape.value if verdict.shape else _NOTHING
            run, headline = for_markdown(report.run, cell=True), for_markdown(verdict.headline, cell=True)
            yield f"| {key} | {run} | {verdict.outcome.value} | {shape} | {where} | {headline} |"


def github(reports: Sequence[Report]) -> Iterator[str]:
    """Write the annotations of all runs, no more than a step shows, in turn from each run."""
    every = [list(_github.render(report)) for report in reports]
    yield from islice((line for row in zip_longest(*every) for line in row if line is not None), _github.MOST)


def json(reports: Sequence[Report]) -> Iterator[str]:
    """Write all runs as one document."""
    yield encoded(document(reports))


BY_FORMAT: Mapping[str, Callable[[Sequence[Report]], Iterator[str]]] = {
    "text": text,
    "json": json,
    "markdown": markdown,
    "github": github,
    "junit": _junit.render_many,
}
