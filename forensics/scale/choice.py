"""Which engine reads a run: the one that was asked for, or the one that pays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from forensics.model import Source
from forensics.scale import cluster
from forensics.scale.local import Local
from forensics.scale.second_try import W
from forensics.store.disk import Lost, Map, one_by_one
from forensics.store.unit import Item

R = TypeVar("R")
LOCAL, RAY = "local", "ray"
#: What reading costs one core, measured on logs of ranks and on large logs: 10 ms a file, and 30 MB in a second.
_FILE_S, _BYTES_A_SECOND = 0.01, 30e6
#: What a small run of a fleet costs one core, reading and judging: 1,000 runs of one log of 40 lines.
_RUN_S = 0.1
#: A process takes 0.8 s to start: what several save must be more than twice that. One large file is read by one of
#: them, and the others save nothing: 119 MB of event files took 2.6 s of CPU with two processes and 1.7 s with one.
_SAVES_S = 2.0


class Spread(Struct, frozen=True):
    """Where the files of a run are read: `jobs` is the number of processes, None for as many as pay."""

    jobs: int | None = None
    engine: str = LOCAL

    @property
    def is_remote(self) -> bool:
        """Whether other machines read, which see no temporary folder of this one."""
        return self.engine == RAY

    def is_wide(self, sources: Sequence[Source]) -> bool:
        """Whether reading these goes to other processes of this machine."""
        return self._processes(_costs_s(sources)) > 1

    def map(self) -> Map:
        """Give the engine of a run; how many processes pay follows from the items, which know what is read in slices.

        Raises `MissingPackage` when the engine's package is not installed.
        """
        if self.is_remote:
            cluster.check()
        return lambda function, items: self._done(function, items, _items_costs_s(items))

    def is_alone(self, runs_bytes: Sequence[int]) -> bool:
        """Whether runs of these sizes are judged one by one in this process."""
        return not self.is_remote and self._processes(_runs_costs_s(runs_bytes)) == 1

    def runs(
        self, function: Callable[[W], R], items: Sequence[W], runs_bytes: Sequence[int]
    ) -> Iterator[tuple[W, R] | Lost[W]]:
        """Do items that judge runs of these sizes, in any order.

        Raises `MissingPackage` when the engine's package is not installed; `PlaceError` when a machine refuses a place
        that an item writes to, or reads.
        """
        return self._done(function, items, _runs_costs_s(runs_bytes))

    def _done(
        self, function: Callable[[W], R], items: Sequence[W], costs_s: Sequence[float]
    ) -> Iterator[tuple[W, R] | Lost[W]]:
        if self.is_remote:
            return cluster.Cluster(self.jobs).map_unordered(function, items)
        processes = self._processes(costs_s)
        return Local(processes).map_unordered(function, items) if processes > 1 else one_by_one(function, items)

    def _processes(self, costs_s: Sequence[float]) -> int:
        if self.jobs is not None:
            return self.jobs
        saved_s = sum(costs_s) - max(max(costs_s, default=0.0), sum(costs_s) / _cores())
        return _cores() if saved_s >= _SAVES_S else 1


def _costs_s(sources: Sequence[Source]) -> list[float]:
    return [_FILE_S + source.size_bytes / _BYTES_A_SECOND for source in sources]


def _items_costs_s(items: Sequence[Item]) -> list[float]:
    return [_FILE_S * len(item.asked) + item.size_bytes / _BYTES_A_SECOND for item in items]


def _runs_costs_s(runs_bytes: Sequence[int]) -> list[float]:
    return [_RUN_S + size_bytes / _BYTES_A_SECOND for size_bytes in runs_bytes]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: In this process, whatever it takes: for who asks for one file, and for tests.
ALONE = Spread(jobs=1)
