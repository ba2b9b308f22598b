"""The answer, and its facts."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.model import Report
from forensics.report import phrases as say
from forensics.report._losses import words
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown

_WORDS = {"failed": "FAILED", "suspect": "SUSPECT", "healthy": "HEALTHY", "cannot_say": "CANNOT SAY"}


def verdict(shown: Shown) -> Markup:
    """Give the answer and its facts."""
    report, level = shown.report, shown.level
    found = report.verdict
    shape = f" {found.shape.value.replace('_', ' ')}" if found.shape else ""
    word = tag("span", _WORDS[found.outcome.value] + shape, class_=f"outcome {found.outcome.value}")
    said = words(report.coverage)
    gap = tag("p", tag("strong", "Lost: "), said) if said else ""
    facts = [join(tag("dt", label), tag("dd", value)) for label, value in _facts(report)]
    return join(
        tag("p", word, " ", tag("span", report.run, class_="run")), tag(level, found.headline), gap, tag("dl", facts)
    )


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    found = report.verdict
    yield from ((label, text) for label, text in (("onset", say.onset(found.onset)), ("cause", found.cause)) if text)
    if found.culprits:
        yield "culprits", say.ranks(found.culprits)
    if found.checkpoint is not None:
        yield "checkpoint", say.checkpoint(found.checkpoint)
    yield "confidence", found.confidence.value
    if found.runner_up:
        yield "or else", found.runner_up
    if found.against:
        first = found.against[0]
        yield "against", f"{first.place} {first.quote.strip()}"
    yield "seen", say.seen(report.coverage)
    if unseen := say.unseen(report):
        yield "not seen", "; ".join(unseen)


SECTION = Section(10, verdict, brief=True)
