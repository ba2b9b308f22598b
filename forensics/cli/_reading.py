"""How the runs of a command are read, and the one place where what they say is redacted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from forensics.io.limits import DEFAULT
from forensics.io.places.named import place_of
from forensics.values import replace

if TYPE_CHECKING:
    from forensics.case.identities import Identities
    from forensics.io.places.place import Place
    from forensics.scale.choice import Spread
    from forensics.store.run import Run

T = TypeVar("T")
_STDIN = "-"


class Reading(Struct, frozen=True):
    """Where the tables are kept, whether names are hidden, whether progress is shown, and where files are read.

    `jobs` is the number of processes, None for as many as pay; `engine` says on which machines they are.
    """

    store: Path | None = None
    redact: bool = False
    quiet: bool = False
    jobs: int | None = None
    engine: str = "local"

    @property
    def spread(self) -> Spread:
        from forensics.scale.choice import Spread  # noqa: PLC0415 - polars is not on the path of --help

        return Spread(self.jobs, self.engine)

    def run(self, source: str | Place, *, device_only: bool = False) -> Run:
        """Read a run directory, a file or what a bucket holds; the text `-` reads a log on standard input.

        With `device_only`, only the device's time is read of a profiler trace, unless a store is to be built. Raises
        `UsageError` when there is no such place.
        """
        from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help
        from forensics.cli._progress import watched  # noqa: PLC0415 - same

        limits = replace(DEFAULT, device_only=device_only and self.store is None)
        if source == _STDIN:
            return _configured(pipeline.ingest_stream("stdin", sys.stdin.buffer, limits=limits))
        with watched(quiet=self.quiet) as seen:
            place = place_of(source)
            run = pipeline.ingest_run(place, store=self.store, limits=limits, progress=seen, spread=self.spread)
        return _configured(run, place)

    def shard(self, source: str, text: str) -> Run:
        """Read the share of a run's files that an option names into the store, which has to be one.

        Raises `UsageError` when there is no such share, or no such file.
        """
        from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help
        from forensics.cli._progress import watched  # noqa: PLC0415 - same
        from forensics.scale.shard import parsed  # noqa: PLC0415 - same

        assert self.store is not None
        shard = parsed(text, os.environ)
        with watched(quiet=self.quiet) as seen:
            return pipeline.ingest_shard(source, shard, store=self.store, progress=seen, spread=self.spread)

    def one(self, source: str | Place) -> Run:
        """Read the one run of a place, as `run` does.

        Raises `UsageError` when there is no such place, or the place holds several runs.
        """
        from forensics.case.runs import only  # noqa: PLC0415 - polars is not on the path of --help

        return only(self.run(source))

    def shown(self, value: T, *runs: Run) -> T:
        """Give what may be shown of a value that was found in `runs`: every text of it redacted where that was asked.

        Every command passes what it found through here before anything lays it out, so no format can leak by itself.
        """
        if not self.redact:
            return value
        from forensics.report.redacted import redacted  # noqa: PLC0415 - polars is not on the path of --help

        return redacted(value, *runs)

    def hidden(self, value: T, *known: Identities) -> T:
        """Give what `shown` gives for runs whose names are known."""
        if not self.redact:
            return value
        from forensics.report.redacted import hidden  # noqa: PLC0415 - polars is not on the path of --help

        return hidden(value, *known)


def folders(places: Iterable[Place]) -> tuple[Path, ...]:
    """Give the paths of places of this machine, in which no configuration is believed."""
    return tuple(place.folder for place in places if place.folder is not None)


def _configured(run: Run, *places: Place) -> Run:
    """Give the run under the names and thresholds that the user set, so that every command judges by the same ones."""
    from forensics import config, pipeline  # noqa: PLC0415 - polars is not on the path of --help

    return pipeline.configured(run, config.load(cwd=Path.cwd(), runs=folders(places)))
