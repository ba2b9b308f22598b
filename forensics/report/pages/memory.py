"""The memory of a run, laid out: `forensics.memory/1`, text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forensics.io.safe_text import for_markdown, printable
from forensics.model import Coverage, Issue
from forensics.report._layout import Layout
from forensics.report.pages import _memory_rows as rows
from forensics.report.pages._memory_payload import body
from forensics.report.payload import Payload
from forensics.report.style import Paint, Style

if TYPE_CHECKING:
    from forensics.diagnosis.memory import Memory

_SHOWN = 12
_PAINTS: dict[str, Paint] = {"LEVEL": "green", "CANNOT SAY": "yellow", "GROWS": "yellow", "OUT OF MEMORY": "red"}
_WORDS = {
    "OUT OF MEMORY": "memory ran out, and the run did not survive it",
    "GROWS": "memory was still growing at the end of what was recorded",
    "LEVEL": "nothing grows, and memory did not run out",
    "CANNOT SAY": "no memory metric, snapshot or out-of-memory error was found",
}


@dataclass(frozen=True, slots=True)
class Page:
    """What was found, and the account of the input."""

    memory: Memory
    coverage: Coverage
    issues: tuple[Issue, ...] = ()


def _fields(page: Page) -> Payload:
    return {"run": page.memory.run, **body(page.memory)}


def answer(memory: Memory) -> str:
    """Give the answer in a word or three."""
    if memory.empty:
        return "CANNOT SAY"
    if any(not m.survived for m in memory.oom):
        return "OUT OF MEMORY"
    return "GROWS" if memory.bad else "LEVEL"


def _tables(memory: Memory) -> Iterator[tuple[str, rows.Table]]:
    """The tables that have rows, each with its title."""
    yield from (
        (title, table)
        for title, table in (
            ("series", rows.of_series(memory)),
            ("ranks", rows.of_ranks(memory)),
            ("errors", rows.of_errors(memory)),
            ("snapshots", rows.of_snapshots(memory)),
            ("leaks", rows.of_leaks(memory)),
            ("at the peak", rows.of_peak(memory)),
            ("changed", rows.of_changes(memory)),
            ("grown", rows.of_grown(memory)),
        )
        if table.cells
    )


def _text(page: Page, style: Style) -> Iterator[str]:
    memory, word = page.memory, answer(page.memory)
    against = f"  against {printable(memory.diff.base)}" if memory.diff is not None else ""
    yield f"{style.paint(word, 'bold', _PAINTS[word])}  {printable(memory.run)}{against}"
    yield from style.field("", _WORDS[word], "bold")
    for title, table in _tables(memory):
        yield ""
        yield style.paint(title, "dim")
        shown = table if style.verbose else table.head(_SHOWN)
        yield from rows.lines(shown, style.width)
        if len(shown.cells) < len(table.cells):
            yield f"  and {len(table.cells) - len(shown.cells)} more: -v"
    for note in rows.notes(memory):
        yield from style.field("note", printable(note))


def _markdown(page: Page) -> Iterator[str]:
    memory = page.memory
    yield f"## Memory: {answer(memory).lower()}"
    yield ""
    yield f"{for_markdown(memory.run)}: {_WORDS[answer(memory)]}"
    for title, table in _tables(memory):
        yield ""
        yield f"### {title.capitalize()}"
        yield ""
        yield "| " + " | ".join(table.heads) + " |"
        yield "|" + "---|" * len(table.heads)
        for row in table.head(_SHOWN).cells:
            yield "| " + " | ".join(for_markdown(cell, cell=True) if cell else "" for cell in row) + " |"


LAYOUT = Layout("forensics.memory/1", _fields, _text, _markdown)
