"""A comparison of runs laid out: `forensics.diff/1`, text, Markdown, workflow commands and JUnit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from types import MappingProxyType

from msgspec import Struct

from forensics.compare.decide import Answer
from forensics.compare.model import Diff, Section
from forensics.io.safe_text import for_markdown, printable
from forensics.model import Coverage, Issue
from forensics.report._layout import Layout
from forensics.report._xml import xml_line, xml_lines
from forensics.report.pages.diff_github import github
from forensics.report.payload import Payload, evidence_payload, named
from forensics.report.style import LABEL_CHARS, Paint, Style

_PAINTS: dict[str, Paint] = {
    "regression": "red",
    "improvement": "green",
    "no_change": "green",
    "inconclusive": "yellow",
}


_DECIDING = "metric change interval min_detectable base cand"


class Page(Struct, frozen=True):
    """A comparison, and the account of what was read of all its runs."""

    diff: Diff
    coverage: Coverage
    issues: tuple[Issue, ...] = ()


def _fields(page: Page) -> Payload:
    """The deciding section's answer at the top, every section below."""
    diff, first = page.diff, page.diff.deciding
    return {
        "verdict": diff.answer.value,
        "headline": next((s.headline for s in (first, *diff.sections) if s is not None), "nothing could be compared"),
        **(named(first, _DECIDING) if first else dict.fromkeys(_DECIDING.split())),
        "bases": list(diff.bases),
        "candidate": diff.cand,
        "sections": {section.name: _section(section) for section in diff.sections},
    }


def _section(section: Section) -> Payload:
    return {
        **named(section, "title verdict=answer headline"),
        "facts": [{"label": label, "text": text} for label, text in section.facts],
        "notes": list(section.notes),
        "numbers": dict(sorted(section.numbers.items())),
        "evidence": [evidence_payload(e) for e in section.evidence],
        **({"rows": [dict(row) for row in section.rows]} if section.rows else {}),
    }


def _text(page: Page, style: Style) -> Iterator[str]:
    answer = page.diff.answer
    word = style.paint(answer.value.replace("_", " ").upper(), "bold", _PAINTS[answer.value])
    yield f"{word}  {printable(', '.join(page.diff.bases))} → {printable(page.diff.cand)}"
    for section in page.diff.sections:
        yield from style.field(section.title.lower(), printable(section.headline), "bold")
        for label, text in section.facts:
            yield from style.field(label, printable(text))
        for number, evidence in enumerate(section.evidence[-2:]):
            yield style.paint(f"{'' if number else 'evidence':<{LABEL_CHARS}}", "dim") + printable(evidence.place)
            yield " " * (LABEL_CHARS + 2) + printable(evidence.quote, max(20, style.width - LABEL_CHARS - 2))
        for number, note in enumerate(section.notes):
            yield from style.field("" if number else "note", printable(note))


def _of(form: Callable[[Diff], Iterator[str]]) -> Callable[[Page], Iterator[str]]:
    return lambda page: form(page.diff)


# A comparison for a job summary or a pull request: nothing of an input can act as markup.


def markdown(diff: Diff) -> Iterator[str]:
    """Write the comparison as Markdown lines."""
    yield f"## Comparison: {diff.answer.value.replace('_', ' ')}"
    yield ""
    for base in diff.bases:
        yield f"- base: {for_markdown(base)}"
    yield f"- candidate: {for_markdown(diff.cand)}"
    for section in diff.sections:
        yield from _section_lines(section)


def _section_lines(section: Section) -> Iterator[str]:
    answer = f": {section.answer.value.replace('_', ' ')}" if section.answer else ""
    yield from ("", f"### {section.title}{answer}", "", for_markdown(section.headline))
    if section.facts:
        yield from ("", "| | |", "|---|---|")
        yield from (f"| {label} | {for_markdown(text, cell=True)} |" for label, text in section.facts)
    if section.notes:
        yield ""
        yield from (f"- {for_markdown(note)}" for note in section.notes)
    if section.evidence:
        yield ""
        yield from (f"- {for_markdown(e.place)}: {for_markdown(e.quote)}" for e in section.evidence)


# A comparison as JUnit XML: one test case per section; a regression fails, an inconclusive one is skipped.


def junit(diff: Diff) -> Iterator[str]:
    """Write the comparison as one test suite."""
    answers = [s.answer for s in diff.sections]
    failed, skipped = answers.count(Answer.REGRESSION), answers.count(Answer.INCONCLUSIVE)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield (
        f'<testsuite name="forensics diff" tests="{len(answers)}" failures="{failed}" errors="0" skipped="{skipped}">'
    )
    for section in diff.sections:
        yield from _case(section)
    yield "</testsuite>"


def _case(section: Section) -> Iterator[str]:
    name = f"{section.name}.{section.metric}" if section.metric else section.name
    yield f'  <testcase classname="forensics.diff" name={_quoted(xml_line(name))}>'
    details = escape(xml_lines([f"{label}: {text}" for label, text in section.facts] + list(section.notes)))
    if section.answer is Answer.REGRESSION:
        yield f"    <failure message={_quoted(xml_line(section.headline))}>{details}</failure>"
    elif section.answer is Answer.INCONCLUSIVE:
        yield f"    <skipped message={_quoted(xml_line(section.headline))}/>"
        yield f"    <system-out>{details}</system-out>"
    else:
        yield f"    <system-out>{escape(xml_line(section.headline))}\n{details}</system-out>"
    yield "  </testcase>"


def _quoted(text: str) -> str:
    """A value of an attribute; `xml.sax.saxutils` would do the same, and load a network client."""
    return f'"{escape(text)}"'


LAYOUT = Layout(
    "forensics.diff/1", _fields, _text, _of(markdown), MappingProxyType({"github": _of(github), "junit": _of(junit)})
)
