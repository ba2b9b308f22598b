"""The store on disk: `<place>/<run-key>/gen-<hash>/`, Parquet parts per source and a manifest, published by one rename.

A generation is never changed. Ingesting again reads only the files whose content (SHA-256) or ingester changed; the
parts of the others are linked into the new generation after their checksums hold.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from forensics.io.limits import Limits
from forensics.io.reading import open_source
from forensics.model import FileCoverage, Issue, Source
from forensics.registry import Ingester
from forensics.store import manifest
from forensics.store.fill import fill
from forensics.store.manifest import Entry, Part
from forensics.store.schema import VERSION

_KEY_DIGITS = 16


def default_place() -> Path:
    """Give the user's cache folder for runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "forensics" / "runs"


def run_key(path: Path, *, device_only: bool = False) -> str:
    """Name a run by its absolute path (16 hex digits); what was read of it for the device's time only has its own."""
    key = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:_KEY_DIGITS]
    return f"{key}-device" if device_only else key


@dataclass(frozen=True, slots=True)
class Job:
    """What to read and with what: `root` as discovered, its sources, the ingesters, the bounds; `done` is told each."""

    root: Path
    sources: Sequence[Source]
    ingesters: Sequence[Ingester]
    limits: Limits
    done: Callable[[Source], None] | None = None

    @property
    def versions(self) -> str:
        """What decides, beside the content, whether an old part may be used again."""
        names = ",".join(f"{i.name}={i.version}" for i in self.ingesters)
        return f"{names},schema={VERSION}" + (",device_only" if self.limits.device_only else "")


def ingest_to_disk(
    job: Job, place: Path, run: Path
) -> Iterator[tuple[dict[str, pl.LazyFrame], FileCoverage, tuple[Issue, ...]]]:
    """Bring the store of `run` under `place` up to date, then give each source's tables, coverage and issues."""
    home = place / run_key(run, device_only=job.limits.device_only)
    home.mkdir(parents=True, exist_ok=True)
    known = {e.source: e for e in manifest.latest(home) if e.versions == job.versions}
    work = Path(tempfile.mkdtemp(prefix=".building-", dir=home))
    try:
        entries: list[Entry] = []
        for source in job.sources:
            digest = _digest(job, source)
            old = _reuse(home, work, known.get(source.path), digest)
            entries.append(old or _read(job, source, work / f"s{len(entries):06d}-{digest[:8]}", digest))
            if job.done is not None:
                job.done(source)
        final = manifest.publish(home, work, entries)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    for entry in entries:
        yield _tables(final, entry), entry.coverage, entry.issues


def _digest(job: Job, source: Source) -> str:
    digest = hashlib.sha256()
    try:
        with open_source(job.root, source, job.limits) as opened:
            raw = opened.raw()
            for offset in range(0, len(raw), job.limits.block_bytes):
                digest.update(raw[offset : offset + job.limits.block_bytes])
    except OSError:
        return f"unreadable-{source.mtime_ns}"
    return digest.hexdigest()


def _reuse(home: Path, work: Path, entry: Entry | None, digest: str) -> Entry | None:
    """Link the parts of an unchanged source into the new generation, if every one still has its checksum."""
    if entry is None or entry.sha256 != digest:
        return None
    for part in entry.parts:
        old = home / part.generation / part.file
        if not old.is_file() or manifest.sha256_of(old) != part.sha256:
            return None
    for part in entry.parts:
        target = work / part.file
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(home / part.generation / part.file, target)
        except OSError:
            shutil.copyfile(home / part.generation / part.file, target)
    return entry


def _read(job: Job, source: Source, folder: Path, digest: str) -> Entry:
    folder.mkdir()
    opening = open_source(job.root, source, job.limits)
    sink, coverage = fill(opening, source, job.ingesters, job.limits, folder)
    sink.flush()
    parts = tuple(
        Part(table, f"{folder.name}/{path.name}", rows, manifest.sha256_of(path), "")
        for table, path, rows in sink.parts
    )
    return Entry(source.path, digest, job.versions, parts, coverage, tuple(sink.issues))


def _tables(final: Path, entry: Entry) -> dict[str, pl.LazyFrame]:
    by_table: dict[str, list[Path]] = {}
    for part in entry.parts:
        by_table.setdefault(part.table, []).append(final / part.file)
    return {table: pl.concat([pl.scan_parquet(p, glob=False) for p in paths]) for table, paths in by_table.items()}
