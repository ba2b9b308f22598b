"""The memory of a run, laid out: `forensics.memory/1`, text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from forensics.io.safe_text import for_markdown, printable
from forensics.report._layout import Layout
from forensics.report.payload import Accounted, Payload
from forensics.report.phrases import utc
from forensics.report.style import Paint, Style, markdown_table
from forensics.values import named, replace

if TYPE_CHECKING:
    from forensics.analyses.memory.oom_messages import OomMessage
    from forensics.analyses.memory.ranks import Imbalance
    from forensics.analyses.memory.series import Series
    from forensics.analyses.memory.verdict import Reading
    from forensics.analyses.snapshots.per_device import Snapshot
    from forensics.diagnosis.memory import Diff, Memory

_GIB = 1 << 30
_LEAST = 6
_SHOWN = 12
_PAINTS: dict[str, Paint] = {"LEVEL": "green", "CANNOT SAY": "yellow", "GROWS": "yellow", "OUT OF MEMORY": "red"}
_WORDS = {
    "OUT OF MEMORY": "memory ran out, and the run did not survive it",
    "GROWS": "memory was still growing at the end of what was recorded",
    "LEVEL": "nothing grows, and memory did not run out",
    "CANNOT SAY": "no memory metric, snapshot or out-of-memory error was found",
}
_LEAK = "stack site bytes count per_step period confidence"
_SHARE = "stack bytes count category confidence before"
_GROWTH = "stack site bytes count per_step"


class Page(Accounted, frozen=True):
    """What was found."""

    memory: Memory


def answer(memory: Memory) -> str:
    """Give the answer in a word or three."""
    if memory.empty:
        return "CANNOT SAY"
    if any(not m.survived for m in memory.oom):
        return "OUT OF MEMORY"
    return "GROWS" if memory.bad else "LEVEL"


# The tables: cells as plain text, laid out in the columns of a terminal.


class Table(Struct, frozen=True):
    """Column heads and rows of cells; `wide` is the column that gives way when a row is too long.

    `places` are `file:line`, one per row, printed uncut below it.
    """

    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    wide: int
    places: tuple[str, ...] = ()

    def head(self, count: int) -> Table:
        """Give the first rows."""
        return replace(self, cells=self.cells[:count], places=self.places[:count])


def _lines(table: Table, width: int) -> Iterator[str]:
    """Lay a table out in at most `width` columns: the wide column is cut at its start."""
    every = [table.heads, *(tuple(printable(cell) for cell in row) for row in table.cells)]
    sizes = [max(len(row[i]) for row in every) for i in range(len(table.heads))]
    over = 2 + sum(sizes) + 2 * (len(sizes) - 1) - width
    if over > 0:
        sizes[table.wide] = max(_LEAST, sizes[table.wide] - over)
    for number, row in enumerate(every):
        # the end is kept: of a path and of a metric's name it says more
        cells = [c.ljust(n) if len(c) <= n else "…" + c[len(c) - n + 1 :] for c, n in zip(row, sizes, strict=True)]
        yield ("  " + "  ".join(cells)).rstrip()
        if number and table.places:
            yield "      " + printable(table.places[number - 1])


def _gib(value: float | None) -> str:
    """Write bytes as GiB, or in a smaller unit below a hundredth of it."""
    if value is None:
        return ""
    if abs(value) >= _GIB / 100:
        return f"{value / _GIB:.2f} GiB"
    return f"{value / (1 << 20):.2f} MiB" if abs(value) >= 1 << 20 else f"{value:.0f} B"


def _of_series(memory: Memory) -> Table:
    """One row per series, growing ones first."""
    ordered = sorted(memory.series, key=lambda pair: (not pair[0].form.grows, -(pair[0].share or 0)))
    cells = tuple(
        (
            _told(one.rank),
            one.raw_name,
            one.form.kind,
            f"{one.peak:.1f} %" if one.meaning.unit == "%" else f"{one.peak:.2f} GiB",
            f"{one.form.rise:+.2f}" if one.form.kind != "unknown" else "",
            _full(one),
            reading.words,
        )
        for one, reading in ordered
    )
    return Table(("rank", "metric", "shape", "peak", "rise", "full at", "reading"), cells, 1)


def _told(number: int | None) -> str:
    return "" if number is None else str(number)


def _full(one: Series) -> str:
    if one.reach is None:
        return ""
    return ("≤ " if one.reach.at_the_latest else "") + f"{one.reach.low:.0f}-{one.reach.high:.0f}"


def _of_ranks(memory: Memory) -> Table:
    """One row per metric that several ranks print."""
    cells = tuple(
        (
            row.name,
            str(len(row.levels)),
            f"{row.lowest.rank}: {row.lowest.peak:.2f}",
            f"{row.median:.2f}",
            f"{row.top.rank}: {row.top.peak:.2f}",
            f"{row.ratio:.2f}",
        )
        for row in memory.ranks
    )
    return Table(("metric", "ranks", "lowest", "median", "highest GiB", "ratio"), cells, 0)


def _of_errors(memory: Memory) -> Table:
    cells = tuple(
        (
            _told(m.rank),
            _told(m.step),
            m.phase if m.where == "device" else "host",
            *map(_gib, (m.sizes.tried, m.sizes.free, m.sizes.unallocated)),
            "survived" if m.survived else m.reading,
        )
        for m in memory.oom
    )
    places = tuple(f"{m.source}{m.locator}" for m in memory.oom)
    return Table(("rank", "step", "phase", "tried", "free", "unused", "reading"), cells, 6, places)


def _of_snapshots(memory: Memory) -> Table:
    cells = tuple(
        (str(s.device), s.quality, *map(_gib, sizes), f"{100 * s.fragmentation:.0f} %", s.source)
        for s, sizes in ((s, (s.peak_bytes, s.allocated_bytes, s.reserved_bytes)) for s in memory.snapshots)
    )
    return Table(("dev", "quality", "peak", "allocated", "reserved", "stuck", "file"), cells, 6)


def _of_leaks(memory: Memory) -> Table:
    cells = tuple(
        (_gib(leak.bytes), str(leak.count), _gib(leak.per_step), leak.confidence.value, leak.site)
        for s in memory.snapshots
        for leak in s.leaks
    )
    return Table(("kept", "blocks", "per step", "confidence", "line"), cells, 4)


def _of_peak(memory: Memory) -> Table:
    """Memory of the first snapshot at its peak, by line of code."""
    cells = tuple(
        (_gib(share.bytes), str(share.count), share.category, share.site)
        for s in memory.snapshots[:1]
        for share in s.peak_by_stack
    )
    return Table(("held", "blocks", "what", "line"), cells, 3)


def _of_changes(memory: Memory) -> Table:
    """Peaks of two runs side by side."""
    changed = memory.diff.series if memory.diff is not None else ()
    cells = tuple(
        (_told(c.rank), c.metric, f"{c.base:.2f}", f"{c.cand:.2f}", f"{c.cand - c.base:+.2f} {c.unit}")
        for c in sorted(changed, key=lambda c: -abs(c.cand - c.base))
    )
    return Table(("rank", "metric", "base", "now", "change"), cells, 1)


def _of_grown(memory: Memory) -> Table:
    """Memory that each line of code holds beyond the base."""
    grown = memory.diff.grown if memory.diff is not None else ()
    cells = tuple((_gib(g.bytes), str(g.count), _gib(g.per_step), g.site) for g in grown)
    return Table(("more", "blocks", "per step", "line"), cells, 3)


def _notes(memory: Memory) -> list[str]:
    """Remarks that several rows share, each said once."""
    said = [one.form.note for one, _ in memory.series if one.form.note and one.form.kind != "unknown"]
    thumbs = [
        f"{one.raw_name}: by the rule of thumb ({one.form.kind} = {reading.thumb}) this would be {reading.thumb};"
        f" {reading.why}"
        for one, reading in memory.series
        if reading.thumb is not None and reading.thumb not in reading.words
    ]
    quality = [note for s in memory.snapshots for note in s.notes]
    return list(dict.fromkeys([*said, *thumbs[:3], *quality]))[:6]


_TABLES = {
    "series": _of_series,
    "ranks": _of_ranks,
    "errors": _of_errors,
    "snapshots": _of_snapshots,
    "leaks": _of_leaks,
    "at the peak": _of_peak,
    "changed": _of_changes,
    "grown": _of_grown,
}


def _tables(memory: Memory) -> Iterator[tuple[str, Table]]:
    yield from ((title, table) for title, make in _TABLES.items() if (table := make(memory)).cells)


def _text(page: Page, style: Style) -> Iterator[str]:
    memory, word = page.memory, answer(page.memory)
    against = f"  against {printable(memory.diff.base)}" if memory.diff is not None else ""
    yield f"{style.paint(word, 'bold', _PAINTS[word])}  {printable(memory.run)}{against}"
    yield from style.field("", _WORDS[word], "bold")
    for title, table in _tables(memory):
        yield from ("", style.paint(title, "dim"))
        shown = table if style.verbose else table.head(_SHOWN)
        yield from _lines(shown, style.width)
        if len(shown.cells) < len(table.cells):
            yield f"  and {len(table.cells) - len(shown.cells)} more: -v"
    for note in _notes(memory):
        yield from style.field("note", printable(note))


def _markdown(page: Page) -> Iterator[str]:
    memory = page.memory
    yield f"## Memory: {answer(memory).lower()}"
    yield from ("", f"{for_markdown(memory.run)}: {_WORDS[answer(memory)]}")
    for title, table in _tables(memory):
        yield from ("", f"### {title.capitalize()}", "")
        cells = ([for_markdown(cell, cell=True) if cell else "" for cell in row] for row in table.head(_SHOWN).cells)
        yield from markdown_table(table.heads, cells)


# The document `forensics.memory/1`: every field named by hand.


def _fields(page: Page) -> Payload:
    memory = page.memory
    return {
        "run": memory.run,
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


LAYOUT = Layout("forensics.memory/1", _fields, _text, _markdown)
