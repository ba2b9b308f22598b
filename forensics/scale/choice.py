"""Which engine reads a run: the one that was asked for, or the one that pays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from forensics.model import Source
from forensics.scale import cluster
from forensics.scale.local import Local
from forensics.store.disk import Map, one_by_one

LOCAL, RAY = "local", "ray"
#: What reading costs one core, measured on logs of ranks and on large logs: 10 ms a file, and 30 MB in a second.
_FILE_S, _BYTES_A_SECOND = 0.01, 30e6
#: A process takes 0.8 s to start: what several save must be more than twice that. One large file is read by one of
#: them, and the others save nothing: 119 MB of event files took 2.6 s of CPU with two processes and 1.7 s with one.
_SAVES_S = 2.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the files of a run are read: `jobs` is the number of processes, None for as many as pay."""

    jobs: int | None = None
    engine: str = LOCAL

    @property
    def is_remote(self) -> bool:
        """Whether other machines read, which see no temporary folder of this one."""
        return self.engine == RAY

    def is_wide(self, sources: Sequence[Source]) -> bool:
        """Whether reading these goes to other processes of this machine."""
        return self._processes(sources) > 1

    def map(self, sources: Sequence[Source]) -> Map:
        """Give the engine for these sources.

        Raises:
            MissingPackage: when the engine's package is not installed.
        """
        if self.is_remote:
            cluster.check()
            return cluster.Cluster(self.jobs).map_unordered
        processes = self._processes(sources)
        return Local(processes).map_unordered if processes > 1 else one_by_one

    def _processes(self, sources: Sequence[Source]) -> int:
        if self.jobs is not None:
            return self.jobs
        costs_s = [_FILE_S + source.size_bytes / _BYTES_A_SECOND for source in sources]
        saved_s = sum(costs_s) - max(max(costs_s, default=0.0), sum(costs_s) / _cores())
        return _cores() if saved_s >= _SAVES_S else 1


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: In this process, whatever it takes: for who asks for one file, and for tests.
ALONE = Spread(jobs=1)
