"""The memory of a run, laid out: `forensics.memory/1`, text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from forensics.io.safe_text import for_markdown, printable
from forensics.model import Coverage, Issue
from forensics.report._layout import Layout
from forensics.report.pages import _memory_rows as rows
from forensics.report.payload import Payload, named
from forensics.report.phrases import utc
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
if TYPE_CHECKING:
    from forensics.analyses.memory.oom_messages import OomMessage
    from forensics.analyses.memory.ranks import Imbalance
    from forensics.analyses.memory.series import Series
    from forensics.analyses.memory.verdict import Reading
    from forensics.analyses.snapshots.per_device import Snapshot
    from forensics.diagnosis.memory import Diff, Memory

_LEAK = "stack site bytes count per_step period confidence"
_SHARE = "stack bytes count category confidence before"
_GROWTH = "stack site bytes count per_step"


class Page(Struct, frozen=True):
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


# The document `forensics.memory/1`: every field named by hand.


def body(memory: Memory) -> Payload:
    """Give series, ranks, snapshots, errors and the diff."""
    return {
        "series": [_series(one, reading) for one, reading in memory.series],
        "ranks": [_ranks(row) for row in memory.ranks],
        "snapshots": [_snapshot(s) for s in memory.snapshots],
        "oom": [_message(m) for m in memory.oom],
        "diff": None if memory.diff is None else _diff(memory.diff),
    }


def _series(one: Series, reading: Reading) -> Payload:
    form = one.form
    return {
        **named(one, "rank device attempt source metric=name raw_name kind unit=meaning.unit shape=form.kind by_step"),
        **named(form, "samples warmup level"),
        "last": float(one.y[-1]),
        **named(one, "peak capacity share printed rise=form.rise"),
        "onset_step": one.step(form.onset) if form.grows or form.kind in {"level_shift", "spike"} else None,
        "growth_per_step": form.per_step if form.grows else None,
        **named(form, "period height"),
        "steps": [named(s, "step=x height") for s in form.steps],
        "gap_shape": one.gap.kind if one.gap is not None else None,
        "gap": [one.gap_first, one.gap_last] if one.gap_first is not None else None,
        **named(reading, "reading=words why rule_of_thumb=thumb"),
        "note": form.note or None,
        "oom_step": None if one.reach is None else [one.reach.low, one.reach.high],
        "oom_step_at_the_latest": one.reach is not None and one.reach.at_the_latest,
    }


def _ranks(row: Imbalance) -> Payload:
    levels = [{"rank": rank, "peak": level} for rank, level in row.levels.items()]
    return {"metric": row.name, "levels": levels, **named(row, "highest=top.rank median ratio")}


def _snapshot(one: Snapshot) -> Payload:
    return {
        **named(one, "path=source device rank quality notes events peak_bytes reserved_bytes allocated_bytes"),
        **named(one, "gap_bytes unreleasable_bytes fragmentation expandable"),
        "leaks": [named(leak, _LEAK) for leak in one.leaks],
        "peak_by_stack": [named(share, _SHARE) for share in one.peak_by_stack],
    }


def _message(one: OomMessage) -> Payload:
    return {
        **named(one, "source line=locator.line rank step"),
        "time": utc(one.t_ns),
        **named(one, "where phase reading survived? copies"),
        **named(one.sizes, "device tried_bytes=tried free_bytes=free capacity_bytes=capacity"),
        **named(one.sizes, "allocated_bytes=allocated reserved_unallocated_bytes=unallocated private_bytes=private"),
        **named(one.sizes, "allowed_bytes=allowed process_bytes=own others_bytes=others outside_bytes=outside"),
        "rss_bytes": one.sizes.rss,
        "quote": one.quote,
    }


def _diff(diff: Diff) -> Payload:
    series = [named(c, "metric rank unit base cand") for c in diff.series]
    return {"base": diff.base, "series": series, "grown": [named(g, _GROWTH) for g in diff.grown]}
