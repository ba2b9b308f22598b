"""From one source to its tables: choose the ingester by magic, name, then fallback, and never die of an input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatch
from pathlib import Path

import polars as pl

from forensics.errors import InputError, NotMine
from forensics.io.budget import WorkExceeded
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.model import FileCoverage, FileStatus, Source
from forensics.registry import Ingester
from forensics.store.sink import SourceSink

_COMPRESSED = (".gz", ".zst")
_HEAD_BYTES = 64
#: Smaller files count as they are: runs of 100,000 of them are not asked for their names twice.
_SMALL_BYTES = 64 << 10


def candidates(source: Source, head: bytes, ingesters: Sequence[Ingester]) -> Iterator[Ingester]:
    """Ingesters to ask, in order: by the magic the file begins with, by its path, by its name, fallbacks."""
    name = source.path.rsplit("/", 1)[-1].lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    by_magic = [i for i in ingesters if any(head.startswith(m) for m in i.sniff.magic)]
    named = [i for i in ingesters if not i.sniff.fallback]
    by_name = [i for i in named if any(fnmatch(name, g.lower()) for g in i.sniff.glob)]
    by_path = [i for i in ingesters if any(fnmatch(source.path, g) for g in i.sniff.path)]
    fallbacks = [i for i in ingesters if i.sniff.fallback]
    seen: set[str] = set()
    for one in (*by_magic, *by_path, *by_name, *fallbacks):
        if one.name not in seen:
            seen.add(one.name)
            yield one


def held_bytes(source: Source, ingesters: Sequence[Ingester], limits: Limits) -> int:
    """Memory that the rows of a file may take, as the first reader says that its name calls for and that knows."""
    if source.size_bytes < _SMALL_BYTES:
        return source.size_bytes
    named = candidates(source, b"", ingesters)
    growths = (one.device_growth if limits.device_only else one.growth for one in named)
    growth = next((one for one in growths if one != 1), 1.0)
    packed = source.path.lower().endswith(_COMPRESSED)
    return int(source.size_bytes * (max(growth, 1.0) if packed else growth))


def fill(
    opening: AbstractContextManager[Opened],
    source: Source,
    ingesters: Sequence[Ingester],
    limits: Limits,
    folder: Path | None = None,
) -> tuple[SourceSink, FileCoverage]:
    """Read one source into a sink with the first ingester that does not answer `NotMine`.

    Nothing that an input contains may end the program: what an ingester raises becomes an issue row and lost bytes.
    """
    try:
        with opening as opened:
            for one in candidates(source, opened.head(_HEAD_BYTES), ingesters):
                sink = SourceSink(source, limits, folder=folder, budget=opened.budget)
                if _attempt(one, opened, sink, limits):
                    return sink, sink.coverage(one.name)
    except (OSError, InputError) as error:
        sink = SourceSink(source, limits)
        sink.issue("unreadable", f"{type(error).__name__}: {error}")
        return sink, _skipped(source, f"cannot be opened: {type(error).__name__}")
    return SourceSink(source, limits), _skipped(source, "no ingester knows this content")


def _attempt(one: Ingester, opened: Opened, sink: SourceSink, limits: Limits) -> bool:
    try:
        one.read(opened, sink, limits)
    except NotMine:
        return False
    except (KeyboardInterrupt, SystemExit):
        raise
    except WorkExceeded:
        pass  # stated below, with those that a reader caught
    except InputError as error:
        sink.issue("damaged", error.message)
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 - hostile input must not end the triage
        sink.issue("ingester-failed", f"{one.name}: {type(error).__name__}: {str(error)[:300]}")
    sink.settle_work()
    return True


def _skipped(source: Source, reason: str) -> FileCoverage:
    return FileCoverage(
        source=source.path,
        size_bytes=source.size_bytes,
        read_bytes=0,
        skipped_bytes=source.size_bytes,
        status=FileStatus.SKIPPED,
        reason=reason,
    )
