"""Where the time of the devices went: causes of idle time, kernel categories of each rank, each step's parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import polars as pl

from forensics.compare.kernel_profile import RankProfile, profile
from forensics.figure import Bar, Bars
from forensics.figures._thin import MOST_BARS, REST, window, window_note
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run

_MOST_PARTS = 8
_MS = 1e6
_CATEGORIES = ("kernel-categories", "Kernel categories", "Time on the device by kind of kernel, summed over streams")
_IDLE = ("idle-causes", "Why devices were idle", "Time in which nothing ran on the device, by cause")
_STEP_PARTS = ("compute", "exposed communication", "memory and other work", "idle")


def kernels(run: Run, report: Report) -> Iterator[Bars]:
    """Give the bars of a run with profiler traces; nothing without."""
    if run.scan("spans").select(pl.len()).collect().item() == 0:
        return
    found = profile(run)
    rules = rules_of(report, Shape.SLOWDOWN)
    ranks = [r for r in found.ranks if r.count][:MOST_BARS]
    if ranks:
        idle = [r for r in ranks if r.idle]
        if idle:
            yield _bars(idle, [{g.cause: g.time_ns for g in r.idle} for r in idle], _IDLE, rules)
        yield _bars(ranks, [{s.name: s.time_ns for s in r.categories} for r in ranks], _CATEGORIES, rules)
    stepped = max(ranks, key=lambda r: (len(r.steps), -(r.rank or 0)), default=None)
    if stepped is not None and stepped.steps:
        yield _steps(stepped, rules)


def _name(profile_: RankProfile) -> str:
    return f"rank {profile_.rank}" if profile_.rank is not None else profile_.source


def _names(ranks: list[RankProfile]) -> list[str]:
    """One name for each trace: the rank, with the file where a rank left several."""
    names = [_name(r) for r in ranks]
    return [f"{n}, {r.source}" if names.count(n) > 1 else n for n, r in zip(names, ranks, strict=True)]


def _bars(
    ranks: list[RankProfile], times: list[dict[str, int]], words: tuple[str, str, str], rules: tuple[str, ...]
) -> Bars:
    totals: Counter[str] = Counter()
    for own in times:
        totals.update(own)
    ordered = sorted(totals, key=lambda part: (-totals[part], part))
    parts, rest = ordered[:_MOST_PARTS], ordered[_MOST_PARTS:]
    pieces = [*((part,) for part in parts), *((tuple(rest),) if rest else ())]
    bars = tuple(
        Bar(name, tuple(sum(own.get(part, 0) for part in piece) / _MS for piece in pieces))
        for name, own in zip(_names(ranks), times, strict=True)
    )
    key, title, caption = words
    top = f": most is {parts[0]}." if parts else "."
    return Bars(key, title, caption + top, "ms", (*parts, *((REST,) if rest else ())), bars, rules=rules)


def _steps(rank: RankProfile, rules: tuple[str, ...]) -> Bars:
    longest = max(range(len(rank.steps)), key=lambda n: rank.steps[n].dur_ns)
    first, last = window(longest, len(rank.steps))
    parts = (
        (s, (s.compute_ns, s.exposed_ns, s.busy_ns - s.compute_ns - s.exposed_ns, s.dur_ns - s.busy_ns))
        for s in rank.steps[first:last]
    )
    bars = tuple(Bar(f"step {s.step}", tuple(max(0, v) / _MS for v in own)) for s, own in parts)
    top = rank.steps[longest]
    caption = f"Where each step's time went. The longest is step {top.step} with {top.dur_ns / _MS:,.1f} ms."
    note = window_note(last - first, len(rank.steps))
    return Bars("steps", f"Steps of {_name(rank)}", caption, "ms", _STEP_PARTS, bars, rules=rules, note=note)


FIGURES = FigureKind(60, kernels, frozenset((Shape.SLOWDOWN,)))
