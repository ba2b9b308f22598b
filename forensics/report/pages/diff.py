"""A comparison of runs laid out: `forensics.diff/1`, text, Markdown, workflow commands and JUnit."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.compare.decide import Answer
from forensics.compare.model import Diff, Section
from forensics.io.safe_text import for_github, for_github_property, for_markdown, printable
from forensics.report._layout import Layout, markdown_facts, whole
from forensics.report._xml import HEAD, case
from forensics.report.github import MOST, placed
from forensics.report.payload import Accounted, Payload, evidence_payload
from forensics.report.style import LABEL_CHARS, Paint, Style
from forensics.values import named

_PAINTS: dict[str, Paint] = {
    "regression": "red",
    "improvement": "green",
    "no_change": "green",
    "inconclusive": "yellow",
}
_LEVELS = {Answer.REGRESSION: "error", Answer.INCONCLUSIVE: "warning"}
_DECIDING = "metric change interval min_detectable base cand"


class Page(Accounted, frozen=True):
    """A comparison, with the coverage of all its runs."""

    diff: Diff


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
            yield whole("" if number else "evidence", evidence.place, style)
            yield " " * (LABEL_CHARS + 2) + printable(evidence.quote, max(20, style.width - LABEL_CHARS - 2))
        for number, note in enumerate(section.notes):
            yield from style.field("" if number else "note", printable(note))


# A comparison for a job summary or a pull request: nothing of an input can act as markup.


def _markdown(page: Page) -> Iterator[str]:
    diff = page.diff
    yield from (f"## Comparison: {diff.answer.value.replace('_', ' ')}", "")
    for base in diff.bases:
        yield f"- base: {for_markdown(base)}"
    yield f"- candidate: {for_markdown(diff.cand)}"
    for section in diff.sections:
        yield from _section_lines(section)


def _section_lines(section: Section) -> Iterator[str]:
    answer = f": {section.answer.value.replace('_', ' ')}" if section.answer else ""
    yield from ("", f"### {section.title}{answer}", "", for_markdown(section.headline))
    if section.facts:
        yield from ("", *markdown_facts(section.facts))
    if section.notes:
        yield from ("", *(f"- {for_markdown(note)}" for note in section.notes))
    if section.evidence:
        yield from ("", *(f"- {for_markdown(e.place)}: {for_markdown(e.quote)}" for e in section.evidence))


# A comparison as JUnit XML: one test case per section; a regression fails, an inconclusive one is skipped.


def _junit(page: Page) -> Iterator[str]:
    sections = page.diff.sections
    answers = [section.answer for section in sections]
    failed, skipped = answers.count(Answer.REGRESSION), answers.count(Answer.INCONCLUSIVE)
    counts = f'tests="{len(answers)}" failures="{failed}" errors="0" skipped="{skipped}"'
    yield HEAD
    yield f'<testsuite name="forensics diff" {counts}>'
    for section in sections:
        name = f"{section.name}.{section.metric}" if section.metric else section.name
        details = (*(f"{label}: {text}" for label, text in section.facts), *section.notes)
        is_open = section.answer is Answer.INCONCLUSIVE
        kind = "failure" if section.answer is Answer.REGRESSION else "skipped" if is_open else ""
        yield from case("diff", name, section.headline, details, kind)
    yield "</testsuite>"


# A comparison as workflow commands: at most ten annotations, as a step may show no more of one kind.


def _github(page: Page) -> Iterator[str]:
    """One command per section, those that fail first."""
    order = (Answer.REGRESSION, Answer.INCONCLUSIVE)
    told = sorted(page.diff.sections, key=lambda s: order.index(s.answer) if s.answer in order else len(order))
    for section in told[:MOST]:
        yield _command(section, page.diff.cand)


def _command(section: Section, cand: str) -> str:
    level = _LEVELS.get(section.answer, "notice") if section.answer is not None else "notice"
    place = [one for last in section.evidence[-1:] for one in placed(last, cand)]
    place.append(f"title={for_github_property(f'forensics: {section.title}')}")
    message = "\n".join([section.headline, *(f"{label}: {text}" for label, text in section.facts)])
    return f"::{level} {','.join(place)}::{for_github(message)}"


LAYOUT = Layout("forensics.diff/1", _fields, _text, _markdown, {"github": _github, "junit": _junit})
