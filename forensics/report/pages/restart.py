"""Whether to start a run again, laid out: `forensics.restart/1`, text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.io.safe_text import printable
from forensics.model import Verdict
from forensics.report import phrases as say
from forensics.report._layout import Layout, markdown_facts, text_facts
from forensics.report.payload import Accounted, Payload
from forensics.report.style import Paint, Style
from forensics.values import plain

_WORDS: dict[str, tuple[str, Paint]] = {
    "as_is": ("START AGAIN", "green"),
    "elsewhere": ("START ELSEWHERE", "green"),
    "after_change": ("CHANGE FIRST", "red"),
    "stop": ("STOP", "red"),
    "unknown": ("CANNOT SAY", "yellow"),
    "": ("FINISHED", "green"),
}


class Page(Accounted, frozen=True):
    """The verdict of a run."""

    verdict: Verdict
    run: str


def _fields(page: Page) -> Payload:
    verdict, restart = page.verdict, page.verdict.restart
    told = plain(restart) if restart is not None else {"decision": None}
    return {
        "run": page.run,
        "headline": verdict.headline,
        "cause": verdict.cause or None,
        "checkpoint": plain(verdict.checkpoint) if verdict.checkpoint is not None else None,
        **told,
    }


def _facts(page: Page) -> Iterator[tuple[str, str]]:
    restart = page.verdict.restart
    yield "failure", page.verdict.headline
    if restart is None:
        return
    yield "because", restart.basis
    if restart.change:
        yield "change", restart.change
    if restart.avoid:
        yield "leave out", ", ".join(restart.avoid)
    if restart.tries:
        yield "tries", f"{say.plural(restart.tries, 'more attempt')} may fail without getting further"
    if page.verdict.checkpoint is not None:
        yield "checkpoint", say.checkpoint(page.verdict.checkpoint)
    elif restart.no_checkpoint:
        yield "checkpoint", f"none is usable: {restart.no_checkpoint}"
    if restart.command:
        yield "command", restart.command


def _text(page: Page, style: Style) -> Iterator[str]:
    word, paint = _WORDS[page.verdict.restart.decision if page.verdict.restart is not None else ""]
    yield f"{style.paint(word, 'bold', paint)}  {printable(page.run)}"
    yield from text_facts(_facts(page), style)


def _markdown(page: Page) -> Iterator[str]:
    word, _ = _WORDS[page.verdict.restart.decision if page.verdict.restart is not None else ""]
    yield f"## Restart: {word.lower()}"
    yield from ("", *markdown_facts((("run", page.run), *_facts(page))))


LAYOUT = Layout("forensics.restart/1", _fields, _text, _markdown)
