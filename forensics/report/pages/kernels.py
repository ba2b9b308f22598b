"""What the devices did, laid out: `forensics.kernels/1`, text and Markdown."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forensics.io.safe_text import for_markdown, printable
from forensics.model import Coverage, Issue
from forensics.report import phrases as say
from forensics.report._layout import Layout, whole
from forensics.report.pages import _kernels_tables as tables
from forensics.report.pages._kernels_payload import diff_payload, profile_payload
from forensics.report.pages._kernels_tables import Table
from forensics.report.payload import Payload
from forensics.report.style import Style

if TYPE_CHECKING:
    from forensics.compare.kernel_profile import KernelProfile, RankProfile
    from forensics.compare.kernels import KernelDiff

TOP = 10
_GAP = "  "
_LEAST_CHARS = 12


@dataclass(frozen=True, slots=True)
class Page:
    """One profile, or a comparison of two, and the account of the input; `top` 0 shows every kernel."""

    profile: KernelProfile
    diff: KernelDiff | None = None
    coverage: Coverage = dataclasses.field(default_factory=Coverage)
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
        parts = [dataclasses.replace(part, title=part.title + who) for part in parts]
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
