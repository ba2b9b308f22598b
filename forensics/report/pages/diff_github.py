"""A comparison as workflow commands: at most ten annotations, as a step may show no more of one kind."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.compare.decide import Answer
from forensics.compare.model import Diff, Section
from forensics.io.safe_text import for_github, for_github_property

MOST = 10
_LEVELS = {Answer.REGRESSION: "error", Answer.INCONCLUSIVE: "warning"}


def github(diff: Diff) -> Iterator[str]:
    """Write one command per section, those that fail first."""
    told = sorted(diff.sections, key=lambda s: (s.answer is not Answer.REGRESSION, s.answer is not Answer.INCONCLUSIVE))
    for section in told[:MOST]:
        yield _command(section, diff.cand)


def _command(section: Section, cand: str) -> str:
    level = _LEVELS.get(section.answer, "notice") if section.answer is not None else "notice"
    place = list[str]()
    if section.evidence:
        last = section.evidence[-1]
        place.append(f"file={for_github_property(joined(cand, last.source))}")
        if last.locator.line is not None:
            place.append(f"line={last.locator.line}")
    place.append(f"title={for_github_property(f'forensics: {section.title}')}")
    message = "\n".join([section.headline, *(f"{label}: {text}" for label, text in section.facts)])
    return f"::{level} {','.join(place)}::{for_github(message)}"


def joined(run: str, source: str) -> str:
    """Give the path of a source as the caller would write it; a run that is one file is that file."""
    return run if run == source or run.endswith(f"/{source}") else f"{run.rstrip('/')}/{source}"
