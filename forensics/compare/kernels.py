"""Two profiler traces side by side: grown, shrunk and new kernels, by category and by name.

Times are per step and rank where both have steps, so that windows of different lengths compare; else per trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import polars as pl
from msgspec import Struct

from forensics.analyses.traces.gpu import gpu_rows
from forensics.compare.kernel_profile import KernelProfile, Naming, profile, renamed
from forensics.store.run import Run

State = Literal["new", "gone", "grew", "shrank", "same"]


class Change(Struct, frozen=True):
    """A category or a kernel in both traces; times in nanoseconds and counts per `KernelDiff.per`."""

    name: str
    category: str
    base_ns: float
    cand_ns: float
    base_count: float
    cand_count: float

    @property
    def change_ns(self) -> float:
        """By how much the candidate is longer."""
        return self.cand_ns - self.base_ns

    @property
    def counts(self) -> str:
        """Both counts in words."""
        return f"{self.base_count:,.4g} → {self.cand_count:,.4g}"

    @property
    def state(self) -> State:
        """Whether it is new, gone, grew, shrank or stayed."""
        if not self.base_count:
            return "new"
        if not self.cand_count:
            return "gone"
        return "grew" if self.change_ns > 0 else "shrank" if self.change_ns < 0 else "same"


class KernelDiff(Struct, frozen=True):
    """The changes from `base` to `cand`, the largest first; `idle` is by cause, then the loader's wait."""

    base: KernelProfile
    cand: KernelProfile
    per: Literal["step", "trace"]
    base_units: int
    cand_units: int
    categories: tuple[Change, ...] = ()
    kernels: tuple[Change, ...] = ()
    idle: tuple[Change, ...] = ()


def diff(base: Run, cand: Run, naming: Naming = str) -> KernelDiff:
    """Compare the device work of two runs."""
    stepped = all(_steps(run) for run in (base, cand))
    units = [_steps(run) if stepped else max(1, gpu_rows(run)["source"].n_unique()) for run in (base, cand)]
    profiles = (profile(base, naming), profile(cand, naming))
    rows = _changes(_per_unit(base, units[0], naming, stepped), _per_unit(cand, units[1], naming, stepped))
    return KernelDiff(
        base=profiles[0],
        cand=profiles[1],
        per="step" if stepped else "trace",
        base_units=units[0],
        cand_units=units[1],
        categories=_sorted(_by_category(rows)),
        kernels=_sorted(rows),
        idle=_sorted(_idle(*profiles, *units)),
    )


def _idle(base: KernelProfile, cand: KernelProfile, base_units: int, cand_units: int) -> Iterator[Change]:
    before, after = _idle_parts(base), _idle_parts(cand)
    for name in sorted(before.keys() | after.keys()):
        (base_ns, gaps), (cand_ns, cand_gaps) = before.get(name, (0, 0)), after.get(name, (0, 0))
        times, counts = (base_ns / base_units, cand_ns / cand_units), (gaps / base_units, cand_gaps / cand_units)
        yield Change(name, "idle", *times, *counts)


def _idle_parts(found: KernelProfile) -> dict[str, tuple[int, int]]:
    """Idle time and gaps by cause, and the waiting for the data loader whether the device was idle or not."""
    parts: dict[str, tuple[int, int]] = {}
    for rank in found.ranks:
        rows = [(i.cause, i.time_ns, i.gaps) for i in rank.idle]
        if rank.loader is not None:
            rows.append(("loop waits for data loader", rank.loader.wait_ns, rank.loader.calls))
        for name, time_ns, count in rows:
            total = parts.get(name, (0, 0))
            parts[name] = (total[0] + time_ns, total[1] + count)
    return parts


def _steps(run: Run) -> int:
    rows = gpu_rows(run).filter(pl.col("step").is_not_null())
    return rows.select("source", "step").n_unique()


def _per_unit(run: Run, units: int, naming: Naming, stepped: bool) -> pl.DataFrame:  # noqa: FBT001 - a private helper
    rows = gpu_rows(run)
    rows = rows.filter(pl.col("step").is_not_null()) if stepped else rows
    summed = rows.group_by("label", "name").agg(ns=pl.col("dur_ns").sum() / units, count=pl.len() / units)
    return summed.with_columns(renamed(summed["label"], naming))


def _changes(base: pl.DataFrame, cand: pl.DataFrame) -> tuple[Change, ...]:
    both = base.join(cand, on=["label", "name"], how="full", coalesce=True, suffix="_cand").fill_null(0)
    rows = both.select("name", "label", "ns", "ns_cand", "count", "count_cand").sort("label", "name")
    return tuple(Change(*row) for row in rows.iter_rows())


def _by_category(rows: Sequence[Change]) -> Iterator[Change]:
    for name in sorted({row.category for row in rows}):
        own = [(row.base_ns, row.cand_ns, row.base_count, row.cand_count) for row in rows if row.category == name]
        yield Change(name, name, *map(sum, zip(*own, strict=True)))


def _sorted(rows: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(sorted(rows, key=lambda r: (-abs(r.change_ns), r.name)))
