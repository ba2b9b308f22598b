"""Lost input, in the first lines of every answer: half of a file must not pass for the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from forensics.io.safe_text import for_github, for_github_property, for_markdown, printable
from forensics.model import Coverage, FileCoverage, Report
from forensics.report._xml import xml_attribute
from forensics.report.phrases import plural
from forensics.report.style import PLAIN, Style

_LABEL = "lost"
_MOST_LINES = 3


def words(coverage: Coverage) -> str:
    """`12 of 40 bytes of trace.json: chrome_trace failed: …; and of 2 more files`, or nothing where nothing is lost."""
    if not coverage.lost:
        return ""
    first, *more = coverage.lost
    rest = f"; and {sum(f.skipped_bytes for f in more):,} bytes of {plural(len(more), 'more file')}" if more else ""
    return _of(first) + rest


def of_runs(reports: Sequence[Report]) -> str:
    """The same for several runs: how many of them, and the first."""
    hit = [report for report in reports if report.coverage.lost]
    if not hit:
        return ""
    of = f"input of {len(hit):,} of {plural(len(reports), 'run')}"
    return f"{of}, first {hit[0].run}: {words(hit[0].coverage)}"


def _of(file: FileCoverage) -> str:
    reason = f": {file.reason}" if file.reason else ""
    return f"{file.skipped_bytes:,} of {plural(file.size_bytes, 'byte')} of {file.source}{reason}"


def field(said: str, style: Style, most: int = _MOST_LINES) -> Iterator[str]:
    """Lay the words out for a terminal."""
    if said:
        yield from style.field(_LABEL, printable(said), "yellow", most=most)


def told(page: Iterable[str], form: str, said: str, style: Style = PLAIN) -> Iterator[str]:
    """Give the lines of a page with the losses at its top; the same lines when nothing was lost."""
    lines = iter(page)
    if not said:
        return lines
    if form == "github":
        title = for_github_property("forensics: input lost")
        return chain((f"::warning title={title}::{for_github(said)}",), lines)
    if form == "junit":
        told = f'  <properties><property name="{_LABEL}" value={xml_attribute(said)}/></properties>'
        return _behind(lines, "<testsuite ", iter((told,)))
    if form == "markdown":
        return _behind(lines, "", iter(("", f"**Lost:** {for_markdown(said)}")))
    return _behind(lines, "", field(said, style))


def _behind(lines: Iterator[str], start: str, more: Iterator[str]) -> Iterator[str]:
    """Put `more` behind the first line that begins with `start`."""
    for line in lines:
        yield line
        if line.startswith(start):
            yield from more
            break
    yield from lines
