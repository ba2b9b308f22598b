"""Where the time of the devices went: causes of idle time, kernel categories of each rank, each step's parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from forensics.analyses.traces.gpu import gpu_rows
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
        if idle := _named([r for r in ranks if r.idle]):
            yield _bars({name: {g.cause: g.time_ns for g in r.idle} for name, r in idle.items()}, _IDLE, rules)
        kinds = {name: {s.name: s.time_ns for s in r.categories} for name, r in _named(ranks).items()}
        yield _bars(kinds, _CATEGORIES, rules)
    stepped = max(ranks, key=lambda r: (len(r.steps), -(r.rank or 0)), default=None)
    if stepped is not None and stepped.steps:
        yield _steps(stepped, rules)


def _of(rank: int | None, source: str) -> str:
    return f"rank {rank}" if rank is not None else source


def _named(ranks: list[RankProfile]) -> dict[str, RankProfile]:
    """Each trace by its name: the rank, with the file where a rank left several."""
    names = [_of(r.rank, r.source) for r in ranks]
    return {f"{n}, {r.source}" if names.count(n) > 1 else n: r for n, r in zip(names, ranks, strict=True)}


def _stacked(times: Mapping[str, Mapping[str, int]], shown: Iterable[str]) -> tuple[tuple[str, ...], tuple[Bar, ...]]:
    """The parts that take most, the rest put together, and bars of them for those `shown`, in milliseconds."""
    totals: Counter[str] = Counter()
    for own in times.values():
        totals.update(own)
    ordered = sorted(totals, key=lambda part: (-totals[part], part))
    parts, rest = ordered[:_MOST_PARTS], ordered[_MOST_PARTS:]
    pieces = [*((part,) for part in parts), *((tuple(rest),) if rest else ())]
    bars = tuple(
        Bar(name, tuple(sum(times[name].get(part, 0) for part in piece) / _MS for piece in pieces)) for name in shown
    )
    return (*parts, *((REST,) if rest else ())), bars


def _bars(times: dict[str, dict[str, int]], words: tuple[str, str, str], rules: tuple[str, ...]) -> Bars:
    parts, bars = _stacked(times, times)
    key, title, caption = words
    return Bars(key, title, caption + (f": most is {parts[0]}." if parts else "."), "ms", parts, bars, rules=rules)


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
    return Bars(
        "steps", f"Steps of {_of(rank.rank, rank.source)}", caption, "ms", _STEP_PARTS, bars, rules=rules, note=note
    )


def kernel_steps(run: Run, report: Report) -> Iterator[Bars]:
    """Give what each step's time on the device was spent on, of the trace with most steps; nothing without marks."""
    if run.scan("spans").head(1).collect().height == 0:
        return
    work = gpu_rows(run).filter(pl.col("step").is_not_null())
    if work.height == 0:
        return
    counts = work.group_by("source").agg(pl.col("rank").max(), steps=pl.col("step").n_unique())
    best = counts.sort(["steps", "rank", "source"], descending=[True, False, False], nulls_last=True).row(0, named=True)
    sums = work.filter(pl.col("source") == best["source"]).group_by("step", "label").agg(pl.col("dur_ns").sum())
    times: dict[str, dict[str, int]] = {}
    for step, label, dur_ns in sums.sort("step", "label").iter_rows():
        times.setdefault(f"step {step}", {})[label] = dur_ns
    steps = list(times)
    longest = max(steps, key=lambda step: sum(times[step].values()))
    first, last = window(steps.index(longest), len(steps))
    parts, bars = _stacked(times, steps[first:last])
    yield Bars(
        key="step-categories",
        title=f"Kernel categories of each step of {_of(best['rank'], best['source'])}",
        caption=f"Time on the device by kind of kernel, summed over streams, of the work that each step launched. "
        f"Most is in {longest} with {sum(times[longest].values()) / _MS:,.1f} ms; {parts[0]} takes most of all.",
        unit="ms",
        parts=parts,
        bars=bars,
        rules=rules_of(report, Shape.SLOWDOWN),
        note=window_note(last - first, len(steps)),
    )


FIGURES = (FigureKind(60, kernels, frozenset((Shape.SLOWDOWN,))), FigureKind(63, kernel_steps))
