"""The answer: outcome, losses, onset, fix, and whether to start again."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.model import Evidence, Outcome, Report, Verdict
from forensics.report import phrases as say
from forensics.report._losses import words
from forensics.report.html._elements import Markup, definitions, join, some, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import command, outcome

#: A longer line begins at its own words, after what a logger prints, and is cut: it is whole below.
_LONG, _MOST = 90, 120


def verdict(shown: Shown) -> Markup:
    report = shown.report
    said = words(report.coverage)
    gap = tag("p", tag("strong", "Lost: "), said) if said else ""
    head = tag("p", outcome(report.verdict), " ", tag("span", report.run, class_="run"))
    return join(head, tag(shown.level, report.verdict.headline), gap)


def facts(shown: Shown) -> Markup:
    return definitions(_told(shown.report))


def _told(report: Report) -> Iterator[tuple[str, Markup | str]]:
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
    if words := say.confirm(verdict):
        yield "confirm", words


def _first(evidence: Evidence) -> Markup:
    said = say.stated(evidence, _LONG, _MOST / _LONG)
    said = said if len(said) <= _MOST else said[: _MOST - 1] + "…"
    return join(tag("code", evidence.place), " ", tag("span", said, class_="quote"))


def fix(shown: Shown) -> Markup:
    items = [tag("li", say.fix(a), command(a.command)) for a in shown.report.verdict.actions]
    return tag("div", tag("h2", "Fix"), tag("ol", items), class_="fix") if items else join()


def restart(shown: Shown) -> Markup:
    return definitions(_onward(shown.report.verdict))


def _onward(verdict: Verdict) -> Iterator[tuple[str, list[Markup | str]]]:
    if words := say.restart(verdict):
        why = f" {reason}" if (reason := say.why_restart(verdict)) else ""
        options = command(verdict.restart.command if verdict.restart is not None else None)
        yield "restart", [tag("b", words), some("span", why, class_="soft"), options]
    elif verdict.checkpoint is not None:
        yield "checkpoint", [say.checkpoint(verdict.checkpoint)]
    if (check := say.open_check(verdict)) is not None:
        yield "next", [check.text, command(check.command)]


SECTIONS = (
    Section(10, verdict, brief=True, column="head"),
    Section(20, facts, brief=True, column="answer"),
    Section(30, fix, brief=True, column="answer"),
    Section(35, restart, brief=True, column="answer"),
)
