"""The unit of work: some sources of a run in, one pack of their rows in the store out, whoever asks and however often.

`read` depends on its item and on the content of the files alone, so it may run in any process on any machine that sees
both places. A source that fails, fails alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from forensics import registry
from forensics.errors import InputError, PlaceError
from forensics.io.limits import DEFAULT, Limits
from forensics.io.places.named import place_of
from forensics.io.places.place import Place
from forensics.io.reading import Opened, open_source
from forensics.model import FileCoverage, FileStatus, Issue, Source
from forensics.registry import Ingester
from forensics.store import manifest, parts, shelf, stamps
from forensics.store.fill import fill, lasting
from forensics.store.manifest import Entry, Part, Share
from forensics.store.packed import Packed
from forensics.store.schema import TABLES, VERSION
from forensics.store.sink import Raw, SourceSink, settled

_HEAD_BYTES = 64
#: Sources below this size are read together, in one item.
SMALL_BYTES = 256 << 10
#: Rows of smaller ones are finished together; those of others are written as they come, and never packed for memory.
SPILL_BYTES = 64 << 10
#: So many small sources, or bytes of them, are one item: about 0.3 s of work, which is what a killed process loses.
_GROUP_FILES, _GROUP_BYTES = 32, 2 << 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A source to read; `sha256` is the content that the store holds its rows of, nothing where it holds none."""

    source: Source
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """Some sources of the run at the address `place`, whose rows go into a pack in the folder `home`."""

    place: str
    home: str
    asked: tuple[Asked, ...]
    limits: Limits

    @property
    def size_bytes(self) -> int:
        """Bytes of the sources on disk."""
        return sum(one.source.size_bytes for one in self.asked)

    def alone(self) -> tuple[Item, ...]:
        """Give an item for each of the sources."""
        return tuple(replace(self, asked=(one,)) for one in self.asked)


@dataclass(frozen=True, slots=True)
class Record:
    """What became of an item: the name of its pack, and the stamps of sources whose content is as the store holds it.

    `pack` is empty where all of them are so.
    """

    pack: str = ""
    unchanged: dict[str, str] = field(default_factory=dict[str, str])


def address(place: Place) -> str:
    """Give what `place_of` finds a place by in any process of any machine that sees it."""
    return place.name if place.folder is None else os.fspath(place.folder.absolute())


def items(place: str, home: Path, asked: Iterable[Asked], limits: Limits) -> list[Item]:
    """Divide sources into items, the largest first; small ones are read together."""
    every = list(asked)
    small = [one for one in every if one.source.size_bytes < SMALL_BYTES]
    groups = [[one] for one in every if one.source.size_bytes >= SMALL_BYTES]
    group_bytes = _GROUP_BYTES
    for one in small:
        group_bytes += one.source.size_bytes
        if group_bytes > _GROUP_BYTES or len(groups[-1]) >= _GROUP_FILES:
            groups.append([])
            group_bytes = one.source.size_bytes
        groups[-1].append(one)
    found = [Item(place, os.fspath(home), tuple(group), limits) for group in groups]
    return sorted(found, key=lambda item: -item.size_bytes)


def versions(ingesters: Sequence[Ingester], limits: Limits, source: Source) -> str:
    """Give what decides on the rows of a source beside its content."""
    names = ",".join(f"{one.name}={one.version}" for one in ingesters)
    ranks = "".join(f",{name}={n}" for name, n in (("rank", source.rank), ("attempt", source.attempt)) if n is not None)
    return f"{names},schema={VERSION}{',device_only' if limits.device_only else ''}{ranks}"


def read(item: Item) -> Record:
    """Read the sources of an item whose content is not what the store holds, and publish their rows as a pack.

    Raises:
        PlaceError: when the store cannot be written to.
    """
    home, place = Path(item.home), place_of(item.place)
    ingesters = registry.load("ingesters").ingesters
    unchanged: dict[str, str] = {}
    seen: dict[str, str] = {}
    try:
        work = shelf.begun(home)
        try:
            pack = _Pack(work, place, ingesters, item.limits)
            for one in item.asked:
                stamp = stamps.stamp_of(place, one.source, ingesters)
                digest = digest_of(place, one.source, ingesters, item.limits)
                if digest and digest == one.sha256 and _is_as_found(place, one.source):
                    unchanged[one.source.path] = stamp
                    continue
                if pack.add(one.source, digest) and stamp:
                    seen[one.source.path] = stamp
            if not pack.entries:
                return Record(unchanged=unchanged)
            pack.finish()
            stamps.write(work, seen)
            return Record(shelf.publish(home, work, pack.entries, pack.parts, manifest.PACK).name, unchanged)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except OSError as error:  # what a source raises became its issue: this is the store's
        named = f"the store {item.home!r}"
        raise PlaceError(named, error) from error


class _Pack:
    """The entries and files of a pack, as they are written."""

    def __init__(self, work: Path, place: Place, ingesters: Sequence[Ingester], limits: Limits) -> None:
        self.work = work
        self.place = place
        self.ingesters = ingesters
        self.limits = limits
        self.entries: list[Entry] = []
        self.parts: list[Part] = []
        self._waiting: dict[str, list[pl.DataFrame | Packed | Raw]] = {}
        self._files: dict[str, int] = {}

    def add(self, source: Source, digest: str) -> bool:
        """Read one source; true when the same content would give the same rows again."""
        spill = self.work / "spill"
        spills = source.size_bytes >= SPILL_BYTES
        known = versions(self.ingesters, self.limits, source)
        try:
            if spills:
                spill.mkdir()
            opening = open_source(self.place, source, self.limits)
            sink, coverage = fill(opening, source, self.ingesters, self.limits, spill if spills else None)
            shares = self._take(sink)
        except (OSError, PlaceError):  # of the store: what a source raises is an issue already
            raise
        except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 - one file must not end the run
            why = f"{type(error).__name__}: {str(error)[:300]}"
            self.entries.append(lost(source, known, "not read", Issue(source.path, "ingester-failed", why)))
            return False
        finally:
            shutil.rmtree(spill, ignore_errors=True)
        lasts = bool(digest) and lasting(sink.issues) and _is_as_found(self.place, source)
        said = digest if lasts else ""  # else the rows may not be those of what was hashed
        self.entries.append(Entry(source.path, said, known, shares, coverage, tuple(sink.issues)))
        return lasts

    def _take(self, sink: SourceSink) -> tuple[Share, ...]:
        """Take over the rows of a source: those that it spilled, and those that wait for the next ones."""
        left: dict[str, list[pl.DataFrame | Packed | Raw]] = {}
        for table, frame in sink.handed_over():
            left.setdefault(table, []).append(frame)
        rows: dict[str, int] = {}
        for table, path, height in sink.parts:
            self._flush(table)
            path.rename(place := self._next(table))
            self.parts.append(parts.of_file(place, table, height))
            rows[table] = rows.get(table, 0) + height
        for table, frames in left.items():
            rows[table] = rows.get(table, 0) + sum(_height(frame) for frame in frames)
            self._waiting.setdefault(table, []).extend(frames)
        return tuple(Share(table, rows[table]) for table in TABLES if rows.get(table))

    def finish(self) -> None:
        """Write what waits, and put the files in the order of their tables."""
        for table in list(self._waiting):
            self._flush(table)
        order = {table: at for at, table in enumerate(TABLES)}
        self.parts.sort(key=lambda part: order[part.table])

    def _flush(self, table: str) -> None:
        frames = self._waiting.pop(table, [])
        if not sum(map(_height, frames)):
            return
        whole = pl.concat(one.lazy().collect() for one in settled(table, frames))
        self.parts.append(parts.written(whole, self._next(table), table))

    def _next(self, table: str) -> Path:
        number = self._files.get(table, 0)
        self._files[table] = number + 1
        return self.work / manifest.file_name(table, number)


def _height(frame: pl.DataFrame | Packed | Raw) -> int:
    return (frame.frame if isinstance(frame, Raw) else frame).height


def lost(source: Source, known: str, reason: str, issue: Issue) -> Entry:
    """Give the entry of a source of which nothing could be read."""
    coverage = FileCoverage(source.path, source.size_bytes, 0, source.size_bytes, FileStatus.SKIPPED, reason=reason)
    return Entry(source.path, "", known, (), coverage, (issue,))


def _is_as_found(place: Place, source: Source) -> bool:
    """Whether nobody has written to a file, nor replaced it, since the run was looked through."""
    seen = place.seen(source.disk_path or source.path)
    return seen is not None and (seen.mtime_ns, seen.size_bytes) == (source.mtime_ns, source.size_bytes)


def digest_of(place: Place, source: Source, ingesters: Sequence[Ingester], limits: Limits = DEFAULT) -> str:
    """SHA-256 of a file, and of those that are read with it; nothing when one cannot be read to its end."""
    try:
        with open_source(place, source, limits) as opened:
            found = [_hashed(one, limits.block_bytes) for one in (opened, *_read_with(opened, ingesters))]
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
