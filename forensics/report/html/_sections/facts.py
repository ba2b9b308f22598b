"""Where it started, who is at fault, and the cause in words."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.knowledge.causes import causes
from forensics.model import Outcome, Verdict
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown


def facts(shown: Shown) -> Markup:
    """Give onset, culprits and cause."""
    listed = [join(tag("dt", label), tag("dd", value)) for label, value in _facts(shown.report.verdict)]
    return tag("dl", listed) if listed else join()


def _facts(verdict: Verdict) -> Iterator[tuple[str, Markup | str]]:
    if where := say.onset(verdict.onset):
        yield "onset", where
    if verdict.culprits:
        yield "culprits", say.ranks(verdict.culprits)
    if verdict.cause or verdict.outcome in {Outcome.FAILED, Outcome.SUSPECT}:
        yield "cause", _cause(verdict)


def _cause(verdict: Verdict) -> Markup:
    sure = tag("span", f" (confidence {verdict.confidence.value})", class_="soft")
    if not verdict.cause:
        return join("not known", sure)
    known = causes().get(verdict.cause)
    words = f"{known.says} " if known is not None and known.says else ""
    return join(words, tag("code", verdict.cause), sure)


SECTION = Section(20, facts, brief=True, column="answer")
