"""The store on disk: `<place>/<run-key>/gen-<hash>/`, Parquet parts per source and a manifest, published by one rename.

A store saves time and decides nothing: ingesting again reads only the files whose content (SHA-256) or ingester
changed, and the parts of the others are used after a check (`parts.py`). What does not hold is read again from the
run, and an issue says so. A source that fails, fails alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from forensics.errors import InputError, PlaceError
from forensics.io.limits import Limits
from forensics.io.places.named import Where, place_of
from forensics.io.places.place import Place
from forensics.io.reading import Opened, open_source
from forensics.model import FileCoverage, FileStatus, Issue, Source
from forensics.registry import Ingester
from forensics.store import manifest, parts, shelf
from forensics.store.fill import fill, lasting
from forensics.store.manifest import Entry
from forensics.store.schema import VERSION
from forensics.store.shelf import AGES, Ages

#: Code of the issue that says that something of the store was not believed.
UNUSABLE = "store-part-unusable"
_KEY_DIGITS = 16
_HEAD_BYTES = 64


def default_place() -> Path:
    """Give the user's cache folder for runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "forensics" / "runs"


def run_key(where: Where, *, device_only: bool = False) -> str:
    """Name a run by its place (16 hex digits); what was read of it for the device's time only has its own."""
    key = hashlib.sha256(place_of(where).identity).hexdigest()[:_KEY_DIGITS]
    return f"{key}-device" if device_only else key


@dataclass(frozen=True, slots=True)
class Job:
    """What to read and with what: its `place`, its sources, the ingesters, the bounds; `done` is told each."""

    place: Place
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
    job: Job, place: Path, ages: Ages = AGES
) -> Iterator[tuple[dict[str, pl.LazyFrame], FileCoverage, tuple[Issue, ...]]]:
    """Bring the store of the run under `place` up to date, then give each source's tables, coverage and issues.

    Raises:
        PlaceError: when the place cannot be written to.
    """
    try:
        folder, read = _up_to_date(job, place / run_key(job.place, device_only=job.limits.device_only), ages)
    except OSError as error:  # what a source raises became its issue: this is the store's
        named = f"the store {os.fspath(place)!r}"
        raise PlaceError(named, error) from error
    for index, one in enumerate(read):
        yield parts.scanned(folder, index, one.entry), one.entry.coverage, (*one.entry.issues, *one.notes)


@dataclass(frozen=True, slots=True)
class _Known:
    """What the current generation of a run holds: entries by source, each with its place in the manifest."""

    home: Path
    generation: str = ""
    entries: Mapping[str, tuple[int, Entry]] = field(default_factory=dict[str, tuple[int, Entry]])
    notes: tuple[Issue, ...] = ()


@dataclass(frozen=True, slots=True)
class _Read:
    """One source of the new generation; `old_index` is its place in the current one, where its parts lie there."""

    entry: Entry
    old_index: int | None = None
    notes: tuple[Issue, ...] = ()


def _up_to_date(job: Job, home: Path, ages: Ages) -> tuple[Path, list[_Read]]:
    shelf.make_home(home)
    known = _known(home)
    work = shelf.begun(home)
    try:
        read: list[_Read] = []
        for index, source in enumerate(job.sources):
            read.append(_one(job, known, source, work / manifest.folder_of(index)))
            if job.done is not None:
                job.done(source)
        if known.generation and [one.old_index for one in read] == list(range(len(known.entries))):
            folder = home / known.generation
        else:
            folders = [work / manifest.folder_of(index) for index in range(len(read))]
            read = [_placed(job, known, *one) for one in zip(job.sources, read, folders, strict=True)]
            folder = shelf.publish(home, work, [one.entry for one in read])
    finally:
        shutil.rmtree(work, ignore_errors=True)
    shelf.sweep(home, folder.name, ages)
    return folder, [replace(one, notes=(*known.notes, *one.notes)) if i == 0 else one for i, one in enumerate(read)]


def _known(home: Path) -> _Known:
    try:
        current = shelf.current(home)
    except InputError as error:
        return _Known(home, notes=(_unusable("store", error),))
    if current is None or (current.manifest.schema, current.manifest.tool) != (VERSION, manifest.tool_version()):
        return _Known(home)
    return _Known(home, current.folder.name, {e.source: (i, e) for i, e in enumerate(current.manifest.sources)})


def _one(job: Job, known: _Known, source: Source, folder: Path) -> _Read:
    """Take what the store holds of a source that did not change, or read it into `folder`."""
    digest = _digest(job, source)
    index, old = known.entries.get(source.path, (0, None))
    notes: tuple[Issue, ...] = ()
    is_unchanged = old is not None and digest and (old.sha256, old.versions) == (digest, job.versions)
    if old is not None and is_unchanged and _is_as_found(job, source):  # else the hash is not of what was found
        try:
            _check(job, source, old)
            parts.check(known.home, known.generation, index, old)
            return _Read(old, index)
        except InputError as error:
            notes = (_unusable(source.path, error),)
    entry = _read(job, source, folder, digest)
    if not (_is_as_found(job, source) and lasting(entry.issues)):  # the rows may not be those of what was hashed
        return _Read(replace(entry, sha256=""), notes=notes)
    return _Read(entry, notes=notes)


def _check(job: Job, source: Source, old: Entry) -> None:
    """Check what an entry says beside its parts against what is known without it."""
    if old.coverage.size_bytes != source.size_bytes or len(old.issues) > job.limits.issues:
        raise InputError("what it says of the file is not so")
    if old.coverage.ingester not in ("", *(one.name for one in job.ingesters)):
        raise InputError("it was read by nobody known")


def _placed(job: Job, known: _Known, source: Source, one: _Read, folder: Path) -> _Read:
    """Give the parts of an old entry their place in the new generation; if they are gone by now, read the source."""
    if one.old_index is None:
        return one
    try:
        parts.link(known.home, [f"{known.generation}/{file}" for file, _ in one.entry.files(one.old_index)], folder)
    except InputError as error:
        shutil.rmtree(folder)
        again = _one(job, _Known(known.home), source, folder)
        return replace(again, notes=(_unusable(source.path, error),))
    return one


def _unusable(source: str, error: InputError) -> Issue:
    return Issue(source, UNUSABLE, f"the store was not believed, and the run was read again: {error.message}")


def _is_as_found(job: Job, source: Source) -> bool:
    """Whether nobody has written to a file, nor replaced it, since the run was looked through."""
    seen = job.place.seen(source.disk_path or source.path)
    return seen is not None and (seen.mtime_ns, seen.size_bytes) == (source.mtime_ns, source.size_bytes)


def _digest(job: Job, source: Source) -> str:
    """SHA-256 of a file, and of those that are read with it; nothing when one cannot be read to its end."""
    try:
        with open_source(job.place, source, job.limits) as opened:
            found = [_hashed(one, job.limits.block_bytes) for one in (opened, *_read_with(opened, job.ingesters))]
    except (OSError, ValueError, InputError):
        return ""
    if not all(found):
        return ""
    return found[0] if len(found) == 1 else hashlib.sha256("".join(found).encode()).hexdigest()


def _hashed(opened: Opened, block_bytes: int) -> str:
    """SHA-256 of one file, with the extent of a hole in place of its zeros; nothing when it ends before its size.

    Where the place tells contents apart by itself, as object storage does, it is that of what it says.
    """
    if opened.content_id:
        return hashlib.sha256(f"{opened.content_id} {opened.size_bytes}".encode()).hexdigest()
    data, holes = hashlib.sha256(), hashlib.sha256()
    at, found_holes = 0, False
    while at < opened.size_bytes:
        if (data_at := opened.next_data(at)) > at:
            holes.update(b"%d-%d;" % (at, data_at))
            at, found_holes = data_at, True
            continue
        if not (block := opened.span(at, block_bytes)):
            return ""
        data.update(block)
        at += len(block)
    return hashlib.sha256(data.digest() + holes.digest()).hexdigest() if found_holes else data.hexdigest()


def _read_with(opened: Opened, ingesters: Sequence[Ingester]) -> Iterator[Opened]:
    """The files beside a source that a reader which knows its first bytes reads with it."""
    head = opened.head(_HEAD_BYTES)
    known = [one for one in ingesters if one.beside and any(head.startswith(magic) for magic in one.sniff.magic)]
    for end, other in sorted({pair for one in known for pair in one.beside}):
        if (beside := opened.beside(end, other)) is not None:
            yield beside


def _read(job: Job, source: Source, folder: Path, digest: str) -> Entry:
    """Read one source into parts below `folder`; what fails beside its ingester is its loss, and of no other."""
    folder.mkdir()
    try:
        sink, coverage = fill(open_source(job.place, source, job.limits), source, job.ingesters, job.limits, folder)
        sink.flush()
    except (OSError, PlaceError):  # of the store: what a source raises is an issue already
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 - one file must not end the run
        why = f"{type(error).__name__}: {str(error)[:300]}"
        lost = FileCoverage(source.path, source.size_bytes, 0, source.size_bytes, FileStatus.SKIPPED, reason="not read")
        return Entry(source.path, "", job.versions, (), lost, (Issue(source.path, "ingester-failed", why),))
    written = tuple(parts.of_file(path, table, rows) for table, path, rows in sink.parts)
    return Entry(source.path, digest, job.versions, written, coverage, tuple(sink.issues))
