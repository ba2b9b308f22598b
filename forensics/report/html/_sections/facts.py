"""Where it started, who is at fault, the cause, and the first thing that proves it."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.identity import spoken
from forensics.model import Evidence, Outcome, Report
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import words_of

#: A longer line begins at its own words, after what a logger prints, and is cut: it stands whole below.
_LONG, _MOST = 90, 120


def facts(shown: Shown) -> Markup:
    """Give onset, culprits, cause and the first evidence."""
    listed = [join(tag("dt", label), tag("dd", value)) for label, value in _facts(shown.report)]
    return tag("dl", listed) if listed else join()


def _facts(report: Report) -> Iterator[tuple[str, Markup | str]]:
    verdict = report.verdict
    if where := say.onset(verdict.onset):
        yield "onset", where
    if verdict.culprits:
        yield "culprits", say.ranks(verdict.culprits)
    if verdict.cause or verdict.outcome in {Outcome.FAILED, Outcome.SUSPECT}:
        yield "cause", say.cause(verdict)
    lead = say.lead(report)
    if lead is not None and verdict.lead is None:  # nothing was found wrong: this is only worth a look
        yield "note", f"{lead.title} ({lead.evidence[0].place})"
    elif lead is not None:
        yield "evidence", _first(lead.evidence[0])


def _first(evidence: Evidence) -> Markup:
    said = words_of(evidence)
    if len(said) > _LONG:
        said = spoken(said) or said
    said = said if len(said) <= _MOST else said[: _MOST - 1] + "…"
    return join(tag("code", evidence.place), " ", tag("span", said, class_="quote"))


SECTION = Section(20, facts, brief=True, column="answer")
