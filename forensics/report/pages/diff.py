"""A comparison of runs laid out: `forensics.diff/1`, text, Markdown, workflow commands and JUnit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType

from forensics.compare.model import Diff, Section
from forensics.io.safe_text import printable
from forensics.model import Coverage, Issue
from forensics.report._layout import Layout
from forensics.report.pages._diff_junit import junit
from forensics.report.pages._diff_markdown import markdown
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


@dataclass(frozen=True, slots=True)
class Page:
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


LAYOUT = Layout(
    "forensics.diff/1", _fields, _text, _of(markdown), MappingProxyType({"github": _of(github), "junit": _of(junit)})
)
