"""A comparison as JUnit XML: one test case per section; a regression fails, an inconclusive one is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from forensics.compare.decide import Answer
from forensics.compare.model import Diff, Section
from forensics.report._xml import xml_line, xml_lines


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
