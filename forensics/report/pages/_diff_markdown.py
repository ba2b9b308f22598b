"""A comparison for a job summary or a pull request: nothing of an input can act as markup."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.compare.model import Diff, Section
from forensics.io.safe_text import for_markdown


def markdown(diff: Diff) -> Iterator[str]:
    """Write the comparison as Markdown lines."""
    yield f"## Comparison: {diff.answer.value.replace('_', ' ')}"
    yield ""
    for base in diff.bases:
        yield f"- base: {for_markdown(base)}"
    yield f"- candidate: {for_markdown(diff.cand)}"
    for section in diff.sections:
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
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
