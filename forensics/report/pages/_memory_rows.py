"""Tables of the memory page: cells as plain text, laid out in the columns of a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from forensics.io.safe_text import printable
from forensics.values import replace

if TYPE_CHECKING:
    from forensics.analyses.memory.series import Series
    from forensics.diagnosis.memory import Memory

_GIB = 1 << 30
_LEAST = 6


class Table(Struct, frozen=True):
    """Column heads and rows of cells; `wide` is the column that gives way when a row is too long.

    `places` are `file:line`, one per row, which are never cut and so stand below it.
    """

    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    wide: int
    places: tuple[str, ...] = ()

    def head(self, count: int) -> Table:
        """Give the first rows."""
        return replace(self, cells=self.cells[:count], places=self.places[:count])


def lines(table: Table, width: int) -> Iterator[str]:
    """Lay a table out in at most `width` columns: the wide column is cut at its start."""
    every = [table.heads, *(tuple(printable(cell) for cell in row) for row in table.cells)]
    sizes = [max(len(row[i]) for row in every) for i in range(len(table.heads))]
    over = 2 + sum(sizes) + 2 * (len(sizes) - 1) - width
    if over > 0:
        sizes[table.wide] = max(_LEAST, sizes[table.wide] - over)
    for number, row in enumerate(every):
        cells = [f"{_cut(cell, size):<{size}}" for cell, size in zip(row, sizes, strict=True)]
        yield ("  " + "  ".join(cells)).rstrip()
        if number and table.places:
            yield "      " + printable(table.places[number - 1])


def _cut(cell: str, size: int) -> str:
    """Keep the end of a cell: of a path and of a metric's name it says more."""
    return cell if len(cell) <= size else "…" + cell[len(cell) - size + 1 :]


def gib(value: float | None) -> str:
    """Write bytes as GiB, or in a smaller unit below a hundredth of it."""
    if value is None:
        return ""
    if abs(value) >= _GIB / 100:
        return f"{value / _GIB:.2f} GiB"
    return f"{value / (1 << 20):.2f} MiB" if abs(value) >= 1 << 20 else f"{value:.0f} B"


def of_series(memory: Memory) -> Table:
    """One row per series, growing ones first."""
    ordered = sorted(memory.series, key=lambda pair: (not pair[0].form.grows, -(pair[0].share or 0)))
    cells = tuple(
        (
            "" if one.rank is None else str(one.rank),
            one.raw_name,
            one.form.kind,
            _value(one, one.peak),
            f"{one.form.rise:+.2f}" if one.form.kind != "unknown" else "",
            _full(one),
            reading.words,
        )
        for one, reading in ordered
    )
    return Table(("rank", "metric", "shape", "peak", "rise", "full at", "reading"), cells, 1)


def _value(one: Series, value: float) -> str:
    return f"{value:.1f} %" if one.meaning.unit == "%" else f"{value:.2f} GiB"


def _full(one: Series) -> str:
    if one.reach is None:
        return ""
    return ("≤ " if one.reach.at_the_latest else "") + f"{one.reach.low:.0f}-{one.reach.high:.0f}"


def of_ranks(memory: Memory) -> Table:
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


def of_errors(memory: Memory) -> Table:
    """One row per out-of-memory error."""
    cells = tuple(
        (
            "" if m.rank is None else str(m.rank),
            "" if m.step is None else str(m.step),
            m.phase if m.where == "device" else "host",
            gib(m.sizes.tried),
            gib(m.sizes.free),
            gib(m.sizes.unallocated),
            "survived" if m.survived else m.reading,
        )
        for m in memory.oom
    )
    places = tuple(f"{m.source}{m.locator}" for m in memory.oom)
    return Table(("rank", "step", "phase", "tried", "free", "unused", "reading"), cells, 6, places)


def of_snapshots(memory: Memory) -> Table:
    """One row per device of a snapshot."""
    cells = tuple(
        (
            str(s.device),
            s.quality,
            gib(s.peak_bytes),
            gib(s.allocated_bytes),
            gib(s.reserved_bytes),
            f"{100 * s.fragmentation:.0f} %",
            s.source,
        )
        for s in memory.snapshots
    )
    return Table(("dev", "quality", "peak", "allocated", "reserved", "stuck", "file"), cells, 6)


def of_leaks(memory: Memory) -> Table:
    """One row per leaking line of code."""
    cells = tuple(
        (
            gib(leak.bytes),
            str(leak.count),
            gib(leak.per_step),
            leak.confidence.value,
            leak.site,
        )
        for s in memory.snapshots
        for leak in s.leaks
    )
    return Table(("kept", "blocks", "per step", "confidence", "line"), cells, 4)


def of_peak(memory: Memory) -> Table:
    """What the first snapshot holds at its peak, by line of code."""
    cells = tuple(
        (gib(share.bytes), str(share.count), share.category, share.site)
        for s in memory.snapshots[:1]
        for share in s.peak_by_stack
    )
    return Table(("held", "blocks", "what", "line"), cells, 3)


def of_changes(memory: Memory) -> Table:
    """Peaks of two runs side by side."""
    if memory.diff is None:
        return Table(("metric",), (), 0)
    cells = tuple(
        (
            "" if c.rank is None else str(c.rank),
            c.metric,
            f"{c.base:.2f}",
            f"{c.cand:.2f}",
            f"{c.cand - c.base:+.2f} {c.unit}",
        )
        for c in sorted(memory.diff.series, key=lambda c: -abs(c.cand - c.base))
    )
    return Table(("rank", "metric", "base", "now", "change"), cells, 1)


def of_grown(memory: Memory) -> Table:
    """What each line of code holds more than in the base."""
    if memory.diff is None:
        return Table(("line",), (), 0)
    cells = tuple((gib(g.bytes), str(g.count), gib(g.per_step), g.site) for g in memory.diff.grown)
    return Table(("more", "blocks", "per step", "line"), cells, 3)


def notes(memory: Memory) -> list[str]:
    """Remarks that several rows share, each said once."""
    said = [f"{one.form.note}" for one, _ in memory.series if one.form.note and one.form.kind != "unknown"]
    thumbs = [
        f"{one.raw_name}: by the rule of thumb ({one.form.kind} = {reading.thumb}) this would be {reading.thumb};"
        f" {reading.why}"
        for one, reading in memory.series
        if reading.thumb is not None and reading.thumb not in reading.words
    ]
    quality = [note for s in memory.snapshots for note in s.notes]
    return list(dict.fromkeys([*said, *thumbs[:3], *quality]))[:6]
