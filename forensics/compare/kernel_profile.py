"""The work of the devices of a run, from its traces: one profile a rank and profiling window, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import polars as pl
from msgspec import Struct

from forensics.analyses.traces.breakdown import by_rank, by_step
from forensics.analyses.traces.gaps import idle_causes
from forensics.analyses.traces.kernels import kernels, shares, unlaunched
from forensics.analyses.traces.loader import loader_share
from forensics.analyses.traces.ranks import waits
from forensics.analyses.traces.steps import steps
from forensics.store.run import Run

T = TypeVar("T")
_KERNEL = ("name", "label", "time_ns", "count")
#: Gives the name under which a category of kernels is shown.
Naming = Callable[[str], str]


class Share(Struct, frozen=True):
    """A category's time: summed over streams, its share of that sum, and the number of kernels."""

    name: str
    time_ns: int
    share: float
    count: int


class Kernel(Struct, frozen=True):
    """All runs of one kernel; `count` of them took `time_ns` together."""

    name: str
    category: str
    time_ns: int
    count: int


class Step(Struct, frozen=True):
    """A step on the host, and the device's time for the work that it launched."""

    step: int
    dur_ns: int
    busy_ns: int = 0
    compute_ns: int = 0
    comm_ns: int = 0
    exposed_ns: int = 0
    memory_ns: int = 0


class Idle(Struct, frozen=True):
    """Gaps of one cause."""

    cause: str
    time_ns: int
    gaps: int
    longest_ns: int


class Loader(Struct, frozen=True):
    """Waiting for the data loader; `share` is of the steps' time, None without steps."""

    calls: int
    wait_ns: int
    share: float | None
    in_process: bool


class RankProfile(Struct, frozen=True):
    """One trace: times are of unions of intervals, exact; `overlap_ns` is communication under computation."""

    source: str
    rank: int | None
    span_ns: int = 0
    busy_ns: int = 0
    idle_ns: int = 0
    compute_ns: int = 0
    comm_ns: int = 0
    memory_ns: int = 0
    overlap_ns: int = 0
    exposed_ns: int = 0
    count: int = 0
    categories: tuple[Share, ...] = ()
    steps: tuple[Step, ...] = ()
    top: tuple[Kernel, ...] = ()
    idle: tuple[Idle, ...] = ()
    before_window: tuple[Kernel, ...] = ()
    no_launch: tuple[Kernel, ...] = ()
    loader: Loader | None = None

    @property
    def overlap_share(self) -> float | None:
        """Share of the communication under which something computes; None without communication."""
        return self.overlap_ns / self.comm_ns if self.comm_ns else None


class Wait(Struct, frozen=True):
    """How long a rank waited for the others in shared collectives; `chance` that one came last so often by chance."""

    rank: int
    collectives: int
    wait_ns: int
    last: int
    chance: float


class KernelProfile(Struct, frozen=True):
    """All traces of a run, by rank; `waits` has the rank that waited least first."""

    name: str
    ranks: tuple[RankProfile, ...] = ()
    waits: tuple[Wait, ...] = ()


def profile(run: Run, naming: Naming = str) -> KernelProfile:
    """Profile every trace of a run; one without device work has its steps and data loader only."""
    named = kernels(run).with_columns(renamed(kernels(run)["label"], naming))
    traced = (
        run.scan("spans")
        .group_by("source")
        .agg(pl.col("rank").max())
        .sort("rank", "source", nulls_last=True)
        .select("source", "rank")
        .collect()
    )
    ranks = tuple(_one(run, named, source, rank) for source, rank in traced.iter_rows())
    found = waits(run).select("rank", "collectives", "wait_ns", "last", "chance")
    return KernelProfile(run.name, ranks, tuple(Wait(*row) for row in found.iter_rows()))


def renamed(labels: pl.Series, naming: Naming) -> pl.Series:
    """Give categories the names under which they are shown."""
    names = {label: naming(label) for label in labels.unique().to_list()}
    return labels.replace_strict(names, return_dtype=pl.String) if names else labels


def _own(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    return frame.filter(pl.col("source") == source)


def _values(kind: Callable[..., T], rows: pl.DataFrame, *columns: str) -> Iterator[T]:
    return (kind(*row) for row in rows.select(columns).iter_rows())


def _one(run: Run, named: pl.DataFrame, source: str, rank: int | None) -> RankProfile:
    own = _own(named, source)
    labels = own.group_by("name", "kind").agg(pl.col("label").first())
    lone = _own(unlaunched(run).join(labels, on=["name", "kind"], how="left", maintain_order="left"), source)
    times, loaders = _times(_own(by_rank(run), source).to_dicts()), _own(loader_share(run), source)
    return RankProfile(
        source=source,
        rank=rank,
        **times,
        categories=tuple(_values(Share, shares(own, "label"), "label", "time_ns", "share", "count")),
        steps=_steps(run, source),
        top=tuple(_values(Kernel, own, *_KERNEL)),
        idle=tuple(_values(Idle, _own(idle_causes(run), source), "cause", "time_ns", "gaps", "longest_ns")),
        before_window=tuple(_values(Kernel, lone.filter("before"), *_KERNEL)),
        no_launch=tuple(_values(Kernel, lone.filter(~pl.col("before").fill_null(value=False)), *_KERNEL)),
        loader=next(_values(Loader, loaders, "calls", "wait_ns", "share", "in_process"), None),
    )


def _times(rows: list[dict[str, Any]]) -> dict[str, int]:
    if not rows:
        return {}
    names = ("span_ns", "busy_ns", "idle_ns", "compute_ns", "memory_ns", "overlap_ns", "exposed_ns", "count")
    return {name: rows[0][name] for name in names} | {"comm_ns": rows[0]["communication_ns"]}


def _steps(run: Run, source: str) -> tuple[Step, ...]:
    marks, work = _own(steps(run), source), _own(by_step(run), source).drop("source", "rank")
    columns = ("busy_ns", "compute_ns", "communication_ns", "exposed_ns", "memory_ns")
    rows = marks.join(work, on="step", how="left", maintain_order="left").select(
        "step", pl.col("end_ns") - pl.col("start_ns"), *(pl.col(c).fill_null(0) for c in columns)
    )
    return tuple(Step(*row) for row in rows.iter_rows())
