"""Where the time of the devices went: causes of idle time, kernel categories of each rank, each step's parts."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.compare.kernel_profile import RankProfile, profile
from forensics.figure import Bar, Bars
from forensics.figures._window import MOST_BARS, REST, window, window_note
from forensics.figures.kind import FigureKind
from forensics.model import Report, Shape
from forensics.store.run import Run

_MOST_PARTS = 8
_MS = 1e6
_STEP_PARTS = ("compute", "exposed communication", "memory and other work", "idle")


def kernels(run: Run, report: Report) -> Iterator[Bars]:
    """Give the bars of a run with profiler traces; nothing without."""
    if run.scan("spans").select(pl.len()).collect().item() == 0:
        return
    found = profile(run)
    rules = tuple(sorted({f.rule for f in report.findings if f.shape.value == "slowdown"}))
    ranks = [r for r in found.ranks if r.count][:MOST_BARS]
    if ranks:
        idle = [r for r in ranks if r.idle]
        if idle:
            yield _idle(idle, rules)
        yield _categories(ranks, rules)
    stepped = max(ranks, key=lambda r: (len(r.steps), -(r.rank or 0)), default=None)
    if stepped is not None and stepped.steps:
        yield _steps(stepped, rules)


def _name(profile_: RankProfile) -> str:
    return f"rank {profile_.rank}" if profile_.rank is not None else profile_.source


def _names(ranks: list[RankProfile]) -> list[str]:
    """One name for each trace: the rank, with the file where a rank left several."""
    names = [_name(r) for r in ranks]
    return [f"{n}, {r.source}" if names.count(n) > 1 else n for n, r in zip(names, ranks, strict=True)]


def _categories(ranks: list[RankProfile], rules: tuple[str, ...]) -> Bars:
    words = ("kernel-categories", "Kernel categories", "Time on the device by kind of kernel, summed over streams")
    return _bars(_names(ranks), [{s.name: s.time_ns for s in r.categories} for r in ranks], words, rules)


def _idle(ranks: list[RankProfile], rules: tuple[str, ...]) -> Bars:
    words = ("idle-causes", "Why devices were idle", "Time in which nothing ran on the device, by cause")
    return _bars(_names(ranks), [{g.cause: g.time_ns for g in r.idle} for r in ranks], words, rules)


def _bars(names: list[str], times: list[dict[str, int]], words: tuple[str, str, str], rules: tuple[str, ...]) -> Bars:
    totals: dict[str, int] = {}
    for own in times:
        for part, time_ns in own.items():
            totals[part] = totals.get(part, 0) + time_ns
    ordered = sorted(totals, key=lambda part: (-totals[part], part))
    parts, rest = ordered[:_MOST_PARTS], ordered[_MOST_PARTS:]
    bars = tuple(
        Bar(name, tuple(own.get(p, 0) / _MS for p in parts) + _rest(own, rest))
        for name, own in zip(names, times, strict=True)
    )
    key, title, caption = words
    top = f": most is {parts[0]}." if parts else "."
    return Bars(key, title, caption + top, "ms", (*parts, *((REST,) if rest else ())), bars, rules)


def _rest(times: dict[str, int], rest: list[str]) -> tuple[float, ...]:
    return (sum(times.get(p, 0) for p in rest) / _MS,) if rest else ()


def _steps(rank: RankProfile, rules: tuple[str, ...]) -> Bars:
    longest = max(range(len(rank.steps)), key=lambda n: rank.steps[n].dur_ns)
    first, last = window(longest, len(rank.steps))
    bars = tuple(
        Bar(
            f"step {s.step}",
            tuple(
                max(0, v) / _MS
                for v in (s.compute_ns, s.exposed_ns, s.busy_ns - s.compute_ns - s.exposed_ns, s.dur_ns - s.busy_ns)
            ),
        )
        for s in rank.steps[first:last]
    )
    top = rank.steps[longest]
    return Bars(
        "steps",
        f"Steps of {_name(rank)}",
        f"Where each step's time went. The longest is step {top.step} with {top.dur_ns / _MS:,.1f} ms.",
        "ms",
        _STEP_PARTS,
        bars,
        rules,
        note=window_note(last - first, len(rank.steps)),
    )


FIGURES = FigureKind(60, kernels, frozenset((Shape.SLOWDOWN,)))
