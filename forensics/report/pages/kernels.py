"""The work of the devices, laid out: `forensics.kernels/1`, text and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from forensics.analyses.traces.kernels import short_name
from forensics.io.safe_text import for_markdown, printable
from forensics.report import phrases as say
from forensics.report._layout import Layout, whole
from forensics.report.payload import Accounted, Payload
from forensics.report.style import Style, markdown_table
from forensics.values import named, replace

if TYPE_CHECKING:
    from forensics.compare.kernel_profile import Kernel, KernelProfile, RankProfile
    from forensics.compare.kernels import Change, KernelDiff

TOP = 10
_GAP = "  "
_LEAST_CHARS = 12
_NAMED = 3
_NAME_CHARS = 40
_NS = 1_000_000_000
_RANK = "rank source span_ns busy_ns idle_ns compute_ns comm_ns memory_ns overlap_ns exposed_comm_ns=exposed_ns"
_STEP = "step dur_ns busy_ns compute_ns comm_ns exposed_comm_ns=exposed_ns memory_ns"
_KERNEL = "name category time_ns count"
_CHANGE = "name state base_ns cand_ns change_ns base_count cand_count"


class Page(Accounted, frozen=True):
    """One profile, or a comparison of two; `top` 0 shows every kernel."""

    profile: KernelProfile
    diff: KernelDiff | None = None
    top: int = TOP
    per_step: bool = False
    per_rank: bool = False


def _fields(page: Page) -> Payload:
    """With a comparison `ranks` is the candidate's."""
    compared = {} if page.diff is None else _diff_payload(page.diff, page.top)
    return {"run": page.profile.name, **_profile_payload(page.profile, page.top), **compared}


def has_work(profile: KernelProfile) -> bool:
    """Whether any trace has work of a device."""
    return any(rank.count for rank in profile.ranks)


# The tables: the content of each, before text or Markdown lays them out.


class Table(Struct, frozen=True):
    """A title, the names of the columns and rows of cells; the last column is text of the input, the others ours."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def _ms(ns: float) -> str:
    """Nanoseconds as milliseconds with three digits after the point."""
    return f"{ns / 1e6:,.3f}"


def _percent(part: float, whole: float) -> str:
    """A share in percent; nothing of nothing is a dash."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _rank_name(rank: RankProfile) -> str:
    """The number of a rank, or `?` when its trace does not say."""
    return "?" if rank.rank is None else str(rank.rank)


def _times(rank: RankProfile) -> Table:
    """Where the time of one rank went; no rows without device work."""
    if not rank.count:
        return Table("time", (), ())
    parts = (
        (rank.span_ns, "span"),
        (rank.busy_ns, "busy"),
        (rank.idle_ns, "idle"),
        (rank.compute_ns, "compute"),
        (rank.comm_ns, "communication"),
        (rank.exposed_ns, "exposed communication"),
        (rank.memory_ns, "memory"),
    )
    return Table("time", ("ms", "of span", "part"), tuple((_ms(t), _percent(t, rank.span_ns), n) for t, n in parts))


def _by_rank(profile: KernelProfile) -> Table:
    def parts(rank: RankProfile) -> tuple[int, ...]:
        return rank.busy_ns, rank.compute_ns, rank.comm_ns, rank.exposed_ns, rank.idle_ns

    rows = tuple(
        (_rank_name(r), _ms(r.span_ns), *(_percent(t, r.span_ns) for t in parts(r)), r.source) for r in profile.ranks
    )
    return Table("ranks", ("rank", "span ms", "busy", "compute", "comm", "exposed", "idle", "trace"), rows)


def _summed(parts: Iterable[tuple[tuple[str, ...], int, int]], most: int = 0) -> list[tuple[str, ...]]:
    """Rows of time, share and count by name over all ranks, the longest first."""
    time, count = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for key, ns, n in parts:
        time[key] += ns
        count[key] += n
    whole = time.total()
    return [(_ms(ns), _percent(ns, whole), f"{count[key]:,}", *key) for key, ns in time.most_common(most or None)]


def _categories(profiles: Iterable[RankProfile]) -> Table:
    rows = _summed(((one.name,), one.time_ns, one.count) for rank in profiles for one in rank.categories)
    return Table("categories", ("ms", "share", "count", "category"), tuple(rows))


def _kernels_of(profiles: Iterable[RankProfile], most: int) -> Table:
    rows = _summed((((k.category, k.name), k.time_ns, k.count) for rank in profiles for k in rank.top), most)
    return Table("kernels", ("ms", "share", "count", "category", "kernel"), tuple(rows))


def _idle(profiles: Iterable[RankProfile]) -> Table:
    parts = [part for rank in profiles for part in rank.idle]
    longest = {p.cause: p.longest_ns for p in sorted(parts, key=lambda p: p.longest_ns)}
    rows = _summed(((p.cause,), p.time_ns, p.gaps) for p in parts)
    cells = tuple((*row[:-1], _ms(longest[row[-1]]), row[-1]) for row in rows)
    return Table("idle", ("ms", "share", "gaps", "longest ms", "cause"), cells)


def _by_step(profiles: Iterable[RankProfile]) -> Table:
    """One line a step and rank; device time belongs to the step that launched it."""
    rows = tuple(
        (_rank_name(r), *map(_ms, (s.dur_ns, s.busy_ns, s.compute_ns, s.comm_ns, s.exposed_ns)), str(s.step))
        for r in profiles
        for s in r.steps
    )
    return Table("steps", ("rank", "step ms", "busy ms", "compute", "comm", "exposed", "step"), rows)


def _waits(profile: KernelProfile) -> Table:
    rows = tuple((_ms(w.wait_ns), f"{w.last} of {w.collectives}", str(w.rank)) for w in profile.waits)
    return Table("waiting in collectives", ("ms", "came last", "rank"), rows)


def _changes(title: str, found: Iterable[Change], per: str) -> Table:
    rows = tuple(
        (_ms(c.base_ns), _ms(c.cand_ns), f"{c.change_ns / 1e6:+,.3f}", c.counts, c.state, c.name) for c in found
    )
    return Table(title, (f"base ms/{per}", f"cand ms/{per}", "change", "count", "is", "name"), rows)


def _pair(diff: KernelDiff) -> Table:
    """The two traces as wholes, medians over ranks left to the reader: one line a trace."""
    rows = tuple(
        (side, *map(_ms, (r.span_ns, r.busy_ns, r.idle_ns, r.exposed_ns)), r.source)
        for side, profile in (("base", diff.base), ("cand", diff.cand))
        for r in profile.ranks
    )
    return Table("traces", ("side", "span ms", "busy ms", "idle ms", "exposed ms", "trace"), rows)


def _notes(profile: KernelProfile) -> Iterator[tuple[str, str]]:
    """Remarks: work from before the window, work without a launch, the data loader, a late rank."""
    before = [(r, r.before_window) for r in profile.ranks if r.before_window]
    lone = [(r, r.no_launch) for r in profile.ranks if r.no_launch]
    for found, words in ((before, "was launched before the window, and is kept"), (lone, "has no launch in the trace")):
        if found:
            work = _sum([k for _, ks in found for k in ks])
            yield "unlaunched", f"{_who([r for r, _ in found], profile)}{work} {words}"
    loaders = [r for r in profile.ranks if r.loader is not None]
    if loaders:
        yield "loader", _loader(loaders, profile)
    if profile.waits:
        least = profile.waits[0]
        last = f"came last in {least.last} of {least.collectives} (by chance with probability {least.chance:.2g})"
        yield "ranks", f"rank {least.rank} waits least in collectives and {last}"


def _who(found: list[RankProfile], profile: KernelProfile) -> str:
    if len(profile.ranks) == 1:
        return ""
    if len(found) > _NAMED:
        return f"{len(found)} ranks: "
    return "rank " + ", ".join(_rank_name(r) for r in found) + ": "


def _sum(kernels: list[Kernel]) -> str:
    """The amount of work, and its longest parts by name."""
    count, time = Counter[str](), Counter[str]()
    for kernel in kernels:
        count[kernel.name] += kernel.count
        time[kernel.name] += kernel.time_ns
    named = "; ".join(f"{count[name]:,} x {short_name(name)[:_NAME_CHARS]}" for name, _ in time.most_common(_NAMED))
    return f"{say.plural(count.total(), 'piece')} of device work ({_ms(time.total())} ms: {named})"


def _loader(found: list[RankProfile], profile: KernelProfile) -> str:
    most = max(found, key=lambda r: r.loader.wait_ns if r.loader else 0)
    loader = most.loader
    if loader is None:
        return ""
    share = "" if loader.share is None else f", {100 * loader.share:.1f} % of the steps"
    own = "; batches are made in the training process (num_workers=0)" if loader.in_process else ""
    longest = f"longest on rank {_rank_name(most)}: " if len(profile.ranks) > 1 else ""
    return f"{longest}{_ms(loader.wait_ns)} ms in {say.plural(loader.calls, 'call')}{share}{own}"


def _tables(page: Page) -> Iterator[Table]:
    found = page.profile
    if page.diff is not None:
        kernels = page.diff.kernels[: page.top or None]
        yield _pair(page.diff)
        yield _changes("by category", page.diff.categories, page.diff.per)
        yield _changes("idle and waiting", page.diff.idle, page.diff.per)
        yield _changes("by kernel", kernels, page.diff.per)
        if page.per_step:
            yield _by_step((*page.diff.base.ranks, *found.ranks))
        return
    if len(found.ranks) > 1:
        yield _by_rank(found)
    for group in [(r,) for r in found.ranks] if page.per_rank else [found.ranks]:
        yield from _of_ranks(group, page.top)
    if page.per_step:
        yield _by_step(found.ranks)
    yield _waits(found)


def _of_ranks(group: tuple[RankProfile, ...], top: int) -> Iterator[Table]:
    parts = [_categories(group), _kernels_of(group, top), _idle(group)]
    if len(group) == 1:
        parts.insert(0, _times(group[0]))
        who = f" of rank {_rank_name(group[0])}"
        parts = [replace(part, title=part.title + who) for part in parts]
    yield from parts


def _headline(page: Page) -> tuple[str, str]:
    found = page.profile
    if not found.ranks:
        return "CANNOT SAY", "no profiler trace was recognised"
    if not has_work(found):
        return "CANNOT SAY", "the traces have no work of a device"
    if page.diff is not None:
        units = f"{page.diff.base_units} against {page.diff.cand_units}"
        return "KERNELS", f"two compared, per {page.diff.per}{' and rank' * (page.diff.per == 'step')}: {units}"
    steps = len({step.step for rank in found.ranks for step in rank.steps})
    return "KERNELS", f"{say.plural(len(found.ranks), 'trace')}, {say.plural(steps, 'step')}"


def _names(page: Page) -> Iterator[tuple[str, str]]:
    if page.diff is not None:
        yield "base", page.diff.base.name
    yield "cand" if page.diff is not None else "of", page.profile.name


def _text(page: Page, style: Style) -> Iterator[str]:
    word, words = _headline(page)
    yield f"{style.paint(word, 'bold', 'green' if word == 'KERNELS' else 'yellow')}  {printable(words)}"
    for label, name in _names(page):  # a path is copied whole
        yield whole(label, name, style)
    for table in _tables(page):
        if table.rows:
            yield from ("", style.paint(table.title.upper(), "bold"), *_laid(table, style))
    notes = list(_notes(page.profile))
    if notes:
        yield ""
    for label, text in notes:
        yield from style.field(label, printable(text), most=4)


def _laid(table: Table, style: Style) -> Iterator[str]:
    """Numbers to the right; the last column, names of the input, takes the rest of the width and is cut to it."""
    rows = [(*row[:-1], printable(short_name(row[-1]))) for row in (table.head, *table.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.head) - 1)]
    rest = max(_LEAST_CHARS, style.width - sum(widths) - len(_GAP) * len(widths))
    for index, row in enumerate(rows):
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=True)]
        last = row[-1] if len(row[-1]) <= rest else row[-1][: rest - 1] + "…"
        line = _GAP.join([*cells, last])
        yield line if index else style.paint(line, "dim")


def _markdown(page: Page) -> Iterator[str]:
    word, words = _headline(page)
    yield f"## {word.capitalize()}: {words}"
    for label, name in _names(page):
        yield from ("", f"{label} {for_markdown(name)}")
    for table in _tables(page):
        if table.rows:
            yield from ("", f"### {table.title}", "")
            rows = ((*row[:-1], for_markdown(row[-1], cell=True)) for row in table.rows)
            yield from markdown_table(table.head, rows, numbers=len(table.head) - 1)
    for label, text in _notes(page.profile):
        yield from ("", f"**{label}**: {for_markdown(text)}")


LAYOUT = Layout("forensics.kernels/1", _fields, _text, _markdown)


# Kernel profiles as plain values for JSON: seconds, every field named by hand.


def _profile_payload(profile: KernelProfile, top: int) -> Payload:
    return {
        "ranks": [_rank_payload(rank, top) for rank in profile.ranks],
        "waits": [_seconds(w, "rank collectives wait_ns last chance") for w in profile.waits],
    }


def _rank_payload(rank: RankProfile, top: int) -> Payload:
    return {
        **_seconds(rank, f"{_RANK} overlap_share count"),
        "categories": [_seconds(c, "name time_ns share count") for c in rank.categories],
        "steps": [_seconds(step, _STEP) for step in rank.steps],
        "top": [_seconds(one, _KERNEL) for one in rank.top[: top or None]],
        "idle": [_seconds(i, "cause time_ns gaps longest_ns") for i in rank.idle],
        "before_window": _group(rank.before_window, top),
        "no_launch": _group(rank.no_launch, top),
        "data_loader": None if rank.loader is None else _seconds(rank.loader, "calls wait_ns share in_process"),
    }


def _diff_payload(diff: KernelDiff, top: int) -> Payload:
    """The comparison: the base's ranks, and the changes."""
    return {
        "base": {"run": diff.base.name, **_profile_payload(diff.base, top)},
        "diff": {
            **named(diff, "per base_units cand_units"),
            "categories": [_seconds(c, _CHANGE) for c in diff.categories],
            "idle": [_seconds(c, _CHANGE) for c in diff.idle],
            "kernels": [_seconds(k, f"{_CHANGE} category") for k in diff.kernels[: top or None]],
        },
    }


def _seconds(value: object, names: str) -> Payload:
    """Fields of a value; those whose names end in `_ns` are given in seconds, and named so."""
    found = named(value, names)
    return {
        f"{name[:-3]}_s" if name.endswith("_ns") else name: held / _NS if name.endswith("_ns") else held
        for name, held in found.items()
    }


def _group(found: Sequence[Kernel], top: int) -> Payload:
    whole = {"count": sum(k.count for k in found), "time_s": sum(k.time_ns for k in found) / _NS}
    return {**whole, "top": [_seconds(one, _KERNEL) for one in found[: top or None]]}
