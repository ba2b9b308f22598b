"""What the devices did, laid out: `forensics.kernels/1`, text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from forensics.io.safe_text import for_markdown, printable
from forensics.model import Coverage, Issue
from forensics.report import phrases as say
from forensics.report._layout import Layout, whole
from forensics.report.pages import _kernels_tables as tables
from forensics.report.pages._kernels_tables import Table
from forensics.report.payload import Payload, named
from forensics.report.style import Style
from forensics.values import replace

if TYPE_CHECKING:
    from forensics.compare.kernel_profile import KernelProfile, RankProfile
    from forensics.compare.kernels import KernelDiff

TOP = 10
_GAP = "  "
_LEAST_CHARS = 12
if TYPE_CHECKING:
    from forensics.compare.kernel_profile import Kernel, KernelProfile, RankProfile
    from forensics.compare.kernels import KernelDiff

_NS = 1_000_000_000
_RANK = "rank source span_ns busy_ns idle_ns compute_ns comm_ns memory_ns overlap_ns exposed_comm_ns=exposed_ns"
_STEP = "step dur_ns busy_ns compute_ns comm_ns exposed_comm_ns=exposed_ns memory_ns"
_CHANGE = "name state base_ns cand_ns change_ns base_count cand_count"


class Page(Struct, frozen=True):
    """One profile, or a comparison of two, and the account of the input; `top` 0 shows every kernel."""

    profile: KernelProfile
    diff: KernelDiff | None = None
    coverage: Coverage = field(default_factory=Coverage)
    issues: tuple[Issue, ...] = ()
    top: int = TOP
    per_step: bool = False
    per_rank: bool = False


def _fields(page: Page) -> Payload:
    """With a comparison `ranks` is the candidate's."""
    compared = {} if page.diff is None else diff_payload(page.diff, page.top)
    return {
        "run": page.profile.name,
        **profile_payload(page.profile, page.top),
        **compared,
    }


def has_work(profile: KernelProfile) -> bool:
    """Whether any trace has work of a device."""
    return any(rank.count for rank in profile.ranks)


def _tables(page: Page) -> Iterator[Table]:
    found = page.profile
    if page.diff is not None:
        kernels = page.diff.kernels[: page.top or None]
        yield tables.pair(page.diff)
        yield tables.changes("by category", page.diff.categories, page.diff.per)
        yield tables.changes("idle and waiting", page.diff.idle, page.diff.per)
        yield tables.changes("by kernel", kernels, page.diff.per)
        if page.per_step:
            yield tables.steps((*page.diff.base.ranks, *found.ranks))
        return
    if len(found.ranks) > 1:
        yield tables.ranks(found)
    for group in [(r,) for r in found.ranks] if page.per_rank else [found.ranks]:
        yield from _of_ranks(group, page.top)
    if page.per_step:
        yield tables.steps(found.ranks)
    yield tables.waits(found)


def _of_ranks(group: tuple[RankProfile, ...], top: int) -> Iterator[Table]:
    parts = [tables.categories(group), tables.top(group, top), tables.idle(group)]
    if len(group) == 1:
        parts.insert(0, tables.times(group[0]))
        who = f" of rank {tables.rank_name(group[0])}"
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
            yield ""
            yield style.paint(table.title.upper(), "bold")
            yield from _laid(table, style)
    notes = list(tables.notes(page.profile))
    if notes:
        yield ""
    for label, text in notes:
        yield from style.field(label, printable(text), most=4)


def _laid(table: Table, style: Style) -> Iterator[str]:
    """Numbers to the right; the last column, names of the input, takes what is left of the width and is cut to it."""
    rows = [(*row[:-1], printable(tables.short(row[-1]))) for row in (table.head, *table.rows)]
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
        yield ""
        yield f"{label} {for_markdown(name)}"
    for table in _tables(page):
        if table.rows:
            yield ""
            yield f"### {table.title}"
            yield ""
            yield "| " + " | ".join(table.head) + " |"
            yield "|" + "---:|" * (len(table.head) - 1) + "---|"
            for row in table.rows:
                yield "| " + " | ".join((*row[:-1], for_markdown(row[-1], cell=True))) + " |"
    for label, text in tables.notes(page.profile):
        yield ""
        yield f"**{label}**: {for_markdown(text)}"


LAYOUT = Layout("forensics.kernels/1", _fields, _text, _markdown)


# Kernel profiles as plain values for JSON: seconds, every field named by hand.


def profile_payload(profile: KernelProfile, top: int) -> Payload:
    """Give `ranks` and `waits` of one run."""
    return {
        "ranks": [rank_payload(rank, top) for rank in profile.ranks],
        "waits": [_seconds(w, "rank collectives wait_ns last chance") for w in profile.waits],
    }


def rank_payload(rank: RankProfile, top: int) -> Payload:
    """Give one trace."""
    return {
        **_seconds(rank, f"{_RANK} overlap_share count"),
        "categories": [_seconds(c, "name time_ns share count") for c in rank.categories],
        "steps": [_seconds(step, _STEP) for step in rank.steps],
        "top": _kernels(rank.top[: top or None]),
        "idle": [_seconds(i, "cause time_ns gaps longest_ns") for i in rank.idle],
        "before_window": _group(rank.before_window, top),
        "no_launch": _group(rank.no_launch, top),
        "data_loader": None if rank.loader is None else _seconds(rank.loader, "calls wait_ns share in_process"),
    }


def diff_payload(diff: KernelDiff, top: int) -> Payload:
    """Give the comparison: the base's ranks, and what changed."""
    return {
        "base": {"run": diff.base.name, **profile_payload(diff.base, top)},
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


def _kernels(found: Sequence[Kernel]) -> list[Payload]:
    return [_seconds(k, "name category time_ns count") for k in found]


def _group(found: Sequence[Kernel], top: int) -> Payload:
    time = sum(k.time_ns for k in found)
    return {"count": sum(k.count for k in found), "time_s": time / _NS, "top": _kernels(found[: top or None])}
