"""Whether to start again, from which checkpoint and with which command; and what to look at next."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.model import Verdict
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import command


def restart(shown: Shown) -> Markup:
    """Give the decision with its reason and command, and the next check."""
    listed = [join(tag("dt", label), tag("dd", *parts)) for label, parts in _facts(shown.report.verdict)]
    return tag("dl", listed) if listed else join()


def _facts(verdict: Verdict) -> Iterator[tuple[str, list[Markup | str]]]:
    if words := say.restart(verdict):
        options = command(verdict.restart.command) if verdict.restart is not None else []
        yield "restart", [tag("b", words), *_why(say.why_restart(verdict)), *options]
    elif verdict.checkpoint is not None:
        yield "checkpoint", [say.checkpoint(verdict.checkpoint)]
    if (check := say.open_check(verdict)) is not None:
        yield "next", [check.text, *command(check.command)]


def _why(reason: str) -> list[Markup]:
    return [tag("span", f" {reason}", class_="soft")] if reason else []


SECTION = Section(35, restart, brief=True, column="answer")
