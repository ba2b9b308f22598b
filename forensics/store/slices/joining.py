"""Slices of one source, read apart, as the one source that they are: a pack like any source's.

Files of rows that do not change get a second name. A source whose slices do not fit together is read as one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl
from msgspec import Struct, field

from forensics.io.limits import Limits
from forensics.io.places.place import Place
from forensics.io.reading import open_source
from forensics.model import FileCoverage, FileStatus, Issue, Source
from forensics.registry import Ingester
from forensics.store import manifest, parts, shelf, stamps
from forensics.store.digests import whole_digest
from forensics.store.fill import FAULTS, candidates
from forensics.store.manifest import Entry, Part, Share, SliceRead
from forensics.store.parts import Piece
from forensics.store.schema import TABLES
from forensics.store.slices import cutting
from forensics.store.slices.cutting import Cut, Join
from forensics.store.unit import Asked
from forensics.values import replace

_HEAD_BYTES = 64


class Found(Struct, frozen=True):
    """The entry of a source or of a slice, the place of its rows, and its stamp."""

    entry: Entry
    folder: str = ""
    pieces: Sequence[Piece] = ()
    stamp: str = ""


class Sliced(Struct):
    """A source that is read in slices, and those that were found, by their number."""

    source: Source
    cut: Cut
    found: dict[int, Found] = field(default_factory=dict[int, Found])

    def take(self, one: Found) -> bool:
        """Take a slice over; false for one that is cut in another way."""
        own = one.entry.slice
        fits = own is not None and own.part in self.cut.parts
        if own is not None and fits:
            self.found[own.part.number] = one
        return fits

    def missing(self) -> list[Asked]:
        """The slices that are still to be read."""
        left = (part for part in self.cut.parts if part.number not in self.found)
        return [Asked(self.source, part=part, reader=self.cut.reader) for part in left]

    def in_order(self) -> list[Found]:
        """The slices that were found."""
        return [self.found[number] for number in sorted(self.found)]


def planned(
    place: Place, source: Source, ingesters: Sequence[Ingester], limits: Limits, known: Iterable[Found] = ()
) -> Sliced | None:
    """How a source is cut, with its slices that are `known`; None where it is read as one."""
    if not cutting.may_be_cut(source):
        return None
    with suppress(*FAULTS), open_source(place, source, limits) as opened:
        if opened.size_bytes == source.size_bytes:
            readers = list(candidates(opened.source, opened.head(_HEAD_BYTES), ingesters))
            kept = [(one, one.entry.slice.part) for one in known if one.entry.slice is not None]
            counted = {part.begin: (part.lines_before, part.breaks_before) for _, part in kept}
            sliced = Sliced(source, cutting.cut(opened, readers, limits, counted))
            for one, _ in kept:
                sliced.take(one)
            return sliced if sliced.cut.parts else None
    return None


def name_of(source: Source, part: int) -> str:
    """The key that assigns a slice to a share."""
    return f"{source.path}#{part}"


def known(home: Path, source: Source, versions: str, stamp: str) -> Iterator[Found]:
    """Slices of a source that others have published, or that this process read before it was killed.

    `versions` is what decides on their rows beside the content, `stamp` that of the file now.
    """
    for held in shelf.packs(home) if stamp else ():
        own = [entry for entry in held.manifest.sources if entry.slice is not None and entry.source == source.path]
        if not own or not manifest.is_ours(held.manifest) or stamps.read(home, held.name).get(source.path) != stamp:
            continue
        placed = held.placed()
        if not shelf.damaged(home, placed, {source.path}):
            for entry, pieces in placed:
                if entry in own and entry.sha256 and entry.versions == versions:
                    yield Found(entry, held.name, pieces, stamp)


def published(home: Path, sliced: Sliced, limits: Limits, ingesters: Sequence[Ingester]) -> Found | None:
    """Publish a source whose slices were all found as a pack; None where it is to be read as one.

    Raises `InputError` when a file is not what its manifest says; `PlaceError` when the place cannot be written to.
    """
    reader = next(one for one in ingesters if one.name == sliced.cut.reader)
    work = shelf.begun(home)
    try:
        made = _put_together(home, work, sliced, limits, reader)
        if made is None:
            return None
        entry, written = made
        said = {one.stamp for one in sliced.found.values()}
        stamp = min(said) if len(said) == 1 and entry.sha256 else ""
        stamps.write(work, {entry.source: stamp} if stamp else {})
        held = shelf.publish(home, work, [entry], written, manifest.PACK)
        return Found(entry, held.name, held.placed()[0][1], stamp)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _put_together(
    home: Path, work: Path, sliced: Sliced, limits: Limits, reader: Ingester
) -> tuple[Entry, list[Part]] | None:
    """Bring the rows of all slices into `work`, put right; None where the source is to be read as one."""
    every = sliced.in_order()
    read = [one.entry.slice for one in every if one.entry.slice is not None and one.entry.slice.handover]
    if len(read) < len(sliced.cut.parts) or not _is_within(read, sliced.source.size_bytes, limits):
        return None
    join = cutting.slicing_of(reader).joined([one.handover for one in read])
    if join is None:
        return None
    made = [part for table in TABLES for part in _table(home, work, table, every, join)]
    rows = {table: sum(part.rows for part in made if part.table == table) for table in TABLES}
    shares = tuple(Share(table, count) for table, count in rows.items() if count)
    lasts = all(one.entry.sha256 for one in every)
    digest = whole_digest([digest for one in read for digest in one.digests]) if lasts else ""
    issues = _issues([one.entry for one in every], join, limits)
    return Entry(sliced.source.path, digest, every[0].entry.versions, shares, _coverage(every), issues), made


def _is_within(read: Sequence[SliceRead], size_bytes: int, limits: Limits) -> bool:
    """Whether all slices together stay within the budget of a source of this size."""
    most = limits.work_units + limits.work_units_per_byte * size_bytes
    return max(sum(one.cells for one in read), sum(one.work for one in read)) <= most


def _table(home: Path, work: Path, table: str, every: Sequence[Found], join: Join) -> Iterator[Part]:
    files = 0
    for number, one in enumerate(every):
        first = 0
        for piece in (piece for piece in one.pieces if piece.part.table == table):
            path = work / manifest.file_name(table, files)
            if piece.is_whole and not join.changes(number, table):
                parts.link(home, f"{piece.folder}/{piece.file}", path)
                yield piece.part
                files += 1
            elif (rows := _changed(join, number, table, parts.rows_of(home, piece), first)).height:
                yield parts.written(rows, path, table)
                files += 1
            first += piece.rows


def _changed(join: Join, number: int, table: str, rows: pl.DataFrame, first: int) -> pl.DataFrame:
    return join.changed(number, table, rows, first) if join.changes(number, table) else rows


def _coverage(every: Sequence[Found]) -> FileCoverage:
    """The account of a source, from its slices' accounts."""
    files = [one.entry.coverage for one in every]
    read, skipped = sum(file.read_bytes for file in files), sum(file.skipped_bytes for file in files)
    status = FileStatus.READ if not skipped else FileStatus.PARTIAL if read else FileStatus.SKIPPED
    reasons = dict.fromkeys(reason for file in files for reason in file.reason.split("; ") if reason)
    return replace(
        files[0],
        size_bytes=read + skipped,
        read_bytes=read,
        skipped_bytes=skipped,
        status=status,
        reason="; ".join(reasons),
        records=sum(file.records for file in files),
    )


def _issues(entries: Sequence[Entry], join: Join, limits: Limits) -> tuple[Issue, ...]:
    """The losses of a source: each kind once over its slices, with their count."""
    path = entries[0].source
    found = dict[tuple[str, str], Issue]()
    own = (issue for entry in entries for issue in entry.issues)
    for issue in (*own, *(Issue(path, code, message, count=count) for code, message, count in join.issues)):
        known = found.get((issue.code, issue.message))
        found[issue.code, issue.message] = issue if known is None else replace(known, count=known.count + issue.count)
    every = list(found.values())
    if len(every) > limits.issues:
        rest = every[limits.issues - 1 :]
        more = Issue(path, "more-issues", "further issues of this file", rest[0].byte, rest[0].line)
        every[limits.issues - 1 :] = [replace(more, count=sum(issue.count for issue in rest))]
    return tuple(every)
