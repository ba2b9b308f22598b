"""Where the time of the devices went: kernel categories of each rank, each step's parts, causes of idle time."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.compare.kernel_profile import RankProfile, profile
from forensics.figure import Bar, Bars
from forensics.model import Report
from forensics.store.run import Run

_MOST_BARS, _MOST_PARTS = 40, 8
_MS = 1e6
_STEP_PARTS = ("compute", "exposed communication", "memory and other work", "idle")


def kernels(run: Run, report: Report) -> Iterator[Bars]:
    """Give the bars of a run with profiler traces; nothing without."""
    if run.scan("spans").select(pl.len()).collect().item() == 0:
        return
    found = profile(run)
    rules = tuple(sorted({f.rule for f in report.findings if f.shape.value == "slowdown"}))
    ranks = [r for r in found.ranks if r.count][:_MOST_BARS]
    if ranks:
        yield _categories(ranks, rules)
        idle = [r for r in ranks if r.idle]
        if idle:
            yield _idle(idle, rules)
    stepped = max(ranks, key=lambda r: (len(r.steps), -(r.rank or 0)), default=None)
    if stepped is not None and stepped.steps:
        yield _steps(stepped, rules)


def _name(profile_: RankProfile) -> str:
    return f"rank {profile_.rank}" if profile_.rank is not None else profile_.source


def _categories(ranks: list[RankProfile], rules: tuple[str, ...]) -> Bars:
    totals: dict[str, int] = {}
    for rank in ranks:
        for share in rank.categories:
            totals[share.name] = totals.get(share.name, 0) + share.time_ns
    ordered = sorted(totals, key=lambda n: (-totals[n], n))
    return _bars(
        ranks, {_name(r): {s.name: s.time_ns for s in r.categories} for r in ranks}, ordered,
        ("kernel-categories", "Kernel categories", "Time on the device by kind of kernel, summed over streams"), rules,
    )  # fmt: skip


def _idle(ranks: list[RankProfile], rules: tuple[str, ...]) -> Bars:
    totals: dict[str, int] = {}
    for rank in ranks:
        for gap in rank.idle:
            totals[gap.cause] = totals.get(gap.cause, 0) + gap.time_ns
    ordered = sorted(totals, key=lambda n: (-totals[n], n))
    return _bars(
        ranks, {_name(r): {g.cause: g.time_ns for g in r.idle} for r in ranks}, ordered,
        ("idle-causes", "Why devices were idle", "Time in which nothing ran on the device, by cause"), rules,
    )  # fmt: skip


def _bars(
    ranks: list[RankProfile],
    times: dict[str, dict[str, int]],
    ordered: list[str],
    words: tuple[str, str, str],
    rules: tuple[str, ...],
) -> Bars:
    parts, rest = ordered[:_MOST_PARTS], ordered[_MOST_PARTS:]
    bars = tuple(
        Bar(_name(r), tuple(times[_name(r)].get(p, 0) / _MS for p in parts) + _rest(times[_name(r)], rest))
        for r in ranks
    )
    key, title, caption = words
    top = f": most is {parts[0]}." if parts else "."
    return Bars(key, title, caption + top, "ms", (*parts, *(("other",) if rest else ())), bars, rules)


def _rest(times: dict[str, int], rest: list[str]) -> tuple[float, ...]:
    return (sum(times.get(p, 0) for p in rest) / _MS,) if rest else ()


def _steps(rank: RankProfile, rules: tuple[str, ...]) -> Bars:
    bars = tuple(
        Bar(
            f"step {s.step}",
            tuple(
                max(0, v) / _MS
                for v in (s.compute_ns, s.exposed_ns, s.busy_ns - s.compute_ns - s.exposed_ns, s.dur_ns - s.busy_ns)
            ),
        )
        for s in rank.steps[:_MOST_BARS]
    )
    longest = max(rank.steps, key=lambda s: s.dur_ns)
    return Bars(
        "steps",
        f"Steps of {_name(rank)}",
        f"Where each step's time went. The longest is step {longest.step} with {longest.dur_ns / _MS:,.1f} ms.",
        "ms",
        _STEP_PARTS,
        bars,
        rules,
        note=f"the first {_MOST_BARS} of {len(rank.steps)} steps" if len(rank.steps) > _MOST_BARS else "",
    )
