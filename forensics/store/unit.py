"""The unit of work: some sources of a run in, one pack of their rows in the store out, whoever asks and however often.

`read` depends on its item and on the content of the files alone, so it may run in any process on any machine that sees
both places. A source that fails, fails alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl
from msgspec import Struct, field

from forensics import registry
from forensics.errors import PlaceError
from forensics.io.limits import Limits
from forensics.io.places.named import place_of
from forensics.io.places.place import Place
from forensics.io.reading import open_source
from forensics.io.slices import Slice
from forensics.model import Issue, Source
from forensics.registry import Ingester
from forensics.store import manifest, parts, shelf, stamps
from forensics.store.digests import digest_of, ranges, whole_digest
from forensics.store.fill import FAULTS, fill, fill_slice, lasting, skipped
from forensics.store.manifest import Entry, Part, Share, SliceRead
from forensics.store.packed import Packed
from forensics.store.schema import TABLES, VERSION
from forensics.store.sink import Raw, SourceSink, settled
from forensics.store.slices.cutting import may_be_cut
from forensics.values import replace

#: Sources below this size are read together, in one item.
SMALL_BYTES = 256 << 10
#: Rows of smaller ones are finished together; rows of others are written as they come, and never packed for memory.
SPILL_BYTES = 64 << 10
#: So many small sources, or bytes of them, are one item: about 0.3 s of work, which is what a killed process loses.
_GROUP_FILES, _GROUP_BYTES = 32, 2 << 20


class Asked(Struct, frozen=True):
    """A source to read, or one slice of it; `sha256` is the content that the store holds its rows of, if any.

    `reader` is the ingester that reads the slice, `stamp` what the place says of the source.
    """

    source: Source
    sha256: str = ""
    part: Slice | None = None
    reader: str = ""
    stamp: str = ""

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return self.source.size_bytes if self.part is None else self.part.size_bytes


class Item(Struct, frozen=True):
    """Some sources of the run at the address `place`, whose rows go into a pack in the folder `home`."""

    place: str
    home: str
    asked: tuple[Asked, ...]
    limits: Limits

    @property
    def size_bytes(self) -> int:
        """Bytes of the sources on disk."""
        return sum(one.size_bytes for one in self.asked)

    def alone(self) -> tuple[Item, ...]:
        """Give an item for each of the sources."""
        return tuple(replace(self, asked=(one,)) for one in self.asked)


class Record(Struct, frozen=True):
    """The result of an item: the name of its pack, and the stamps of sources whose content is as the store holds it.

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
    small = [one for one in every if one.size_bytes < SMALL_BYTES and one.part is None]
    groups = [[one] for one in every if one.size_bytes >= SMALL_BYTES or one.part is not None]
    group_bytes = _GROUP_BYTES
    for one in small:
        group_bytes += one.source.size_bytes
        if group_bytes > _GROUP_BYTES or len(groups[-1]) >= _GROUP_FILES:
            groups.append([])
            group_bytes = one.source.size_bytes
        groups[-1].append(one)
    found = [Item(place, os.fspath(home), tuple(group), limits) for group in groups]
    return sorted(found, key=lambda item: -item.size_bytes)


def readers(ingesters: Sequence[Ingester]) -> str:
    """Give the readers, on which the rows of any source depend: the first that knows a source reads it."""
    return ",".join(f"{one.name}={one.version}" for one in ingesters)


def versions(readers: str, limits: Limits, source: Source) -> str:
    """Give all that the rows of a source depend on beside its content; `readers` come from `readers()`."""
    ranks = "".join(f",{name}={n}" for name, n in (("rank", source.rank), ("attempt", source.attempt)) if n is not None)
    return f"{readers},schema={VERSION}{',device_only' if limits.device_only else ''}{ranks}"


def read(item: Item) -> Record:
    """Read the changed sources of an item, and publish their rows as a pack.

    Raises `PlaceError` when the store cannot be written to.
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
                if one.part is not None:
                    if pack.add_slice(one.source, one.part, one.reader) and one.stamp:
                        seen[one.source.path] = one.stamp
                    continue
                digest = digest_of(place, one.source, ingesters, item.limits)
                if digest and digest == one.sha256 and _is_as_found(place, one.source):
                    unchanged[one.source.path] = one.stamp
                    continue
                if one.sha256 and may_be_cut(one.source):
                    continue  # it is to be read in slices
                if pack.add(one.source, digest) and one.stamp:
                    seen[one.source.path] = one.stamp
            if not pack.entries:
                return Record(unchanged=unchanged)
            pack.finish()
            stamps.write(work, seen)
            return Record(shelf.publish(home, work, pack.entries, pack.parts, manifest.PACK).name, unchanged)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except OSError as error:  # what a source raises became its issue: this is the store's
        raise PlaceError(f"the store {item.home!r}", error) from error


class _Pack:
    """The entries and files of a pack, as they are written."""

    def __init__(self, work: Path, place: Place, ingesters: Sequence[Ingester], limits: Limits) -> None:
        self.work = work
        self.place = place
        self.ingesters = ingesters
        self.readers = readers(ingesters)
        self.limits = limits
        self.entries: list[Entry] = []
        self.parts: list[Part] = []
        self._waiting: dict[str, list[pl.DataFrame | Packed | Raw]] = {}
        self._files: dict[str, int] = {}

    def add(self, source: Source, digest: str) -> bool:
        """Read one source; true when the same content would give the same rows again."""
        spill = self.work / "spill"
        spills = source.size_bytes >= SPILL_BYTES
        known = versions(self.readers, self.limits, source)
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
        said = digest if lasts else ""  # else the rows may differ from the hashed content
        self.entries.append(Entry(source.path, said, known, shares, coverage, tuple(sink.issues)))
        return lasts

    def add_slice(self, source: Source, part: Slice, reader: str) -> bool:
        """Read one slice of a source; true when the same content would give the same rows again."""
        spill = self.work / "spill"
        known = versions(self.readers, self.limits, source)
        one = next(one for one in self.ingesters if one.name == reader)
        try:
            spill.mkdir()
            with open_source(self.place, source, self.limits) as opened:
                digests = ranges(opened, part.begin, part.end, self.limits.block_bytes)
                sink, coverage, handover = fill_slice(opened, part, one, self.limits, spill)
                cells, work = opened.budget.cells, opened.budget.work
            shares = self._take(sink)
        except PlaceError:
            raise
        except FAULTS as error:
            why = Issue(source.path, "ingester-failed", f"{type(error).__name__}: {str(error)[:300]}")
            entry = lost(replace(source, size_bytes=part.size_bytes), known, "not read", why)
            self.entries.append(replace(entry, slice=SliceRead(part, "", (), 0, 0)))
            return False
        finally:
            shutil.rmtree(spill, ignore_errors=True)
        lasts = all(digests) and bool(handover) and lasting(sink.issues) and _is_as_found(self.place, source)
        said = whole_digest(digests) if lasts else ""
        read = SliceRead(part, handover, digests if lasts else (), cells, work)
        self.entries.append(Entry(source.path, said, known, shares, coverage, tuple(sink.issues), read))
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
    """Give the entry of a source that could not be read."""
    return Entry(source.path, "", known, (), skipped(source, reason), (issue,))


def _is_as_found(place: Place, source: Source) -> bool:
    """Whether nobody has written to a file, nor replaced it, since the run was looked through."""
    seen = place.seen(source.disk_path or source.path)
    return seen is not None and (seen.mtime_ns, seen.size_bytes) == (source.mtime_ns, source.size_bytes)
