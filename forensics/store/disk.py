"""The store on disk: `<place>/<run-key>/gen-<hash>/`, Parquet files of each table and a manifest.

A store saves time and decides nothing: ingesting again reads only the files whose content (SHA-256) or ingester
changed, and the rows of the others are used after a check (`parts.py`). What does not hold is read again from the run,
and an issue says so. Reading is planned here and done by units of work, wherever they run; what each of them published
stays, so that whoever comes after one that was killed goes on where it ended.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import polars as pl
from msgspec import Struct, field

from forensics.errors import InputError, PlaceError
from forensics.io.limits import Limits
from forensics.io.places.named import Where, place_of
from forensics.io.places.place import Place
from forensics.model import UNREADABLE, FileCoverage, Issue, Source
from forensics.registry import Ingester
from forensics.store import compact, manifest, parts, shelf, stamps, unit
from forensics.store.manifest import Entry
from forensics.store.shelf import AGES, Ages, Held
from forensics.store.slices import joining
from forensics.store.slices.joining import Found, Sliced
from forensics.store.unit import Asked, Item, Record
from forensics.values import replace

W = TypeVar("W")
R = TypeVar("R")
#: Code of the issue that says that something of the store was not believed.
UNUSABLE = "store-part-unusable"
#: Code of the issue that says that the process which read a file died of it.
DIED = "reader-died"
_KEY_DIGITS = 16
#: So often a store that others damage or clear while it is used is looked at anew.
_ROUNDS = 4


def default_place() -> Path:
    """Give the user's cache folder for runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "forensics" / "runs"


def run_key(where: Where, *, device_only: bool = False) -> str:
    """Name a run by its place (16 hex digits); what was read of it for the device's time only has its own."""
    key = hashlib.sha256(place_of(where).identity).hexdigest()[:_KEY_DIGITS]
    return f"{key}-device" if device_only else key


class Lost(Struct, Generic[W], frozen=True):
    """An item that no engine could give a record of, and why."""

    item: W
    why: str


Outcome = tuple[Item, Record] | Lost[Item]
#: Does every item, in any order, in any process.
Map = Callable[[Callable[[Item], Record], Sequence[Item]], Iterator[Outcome]]


def one_by_one(function: Callable[[W], R], items: Sequence[W]) -> Iterator[tuple[W, R] | Lost[W]]:
    """Do every item in this process."""
    return ((item, function(item)) for item in items)


class Job(Struct, frozen=True):
    """What to read and with what: its `place`, its sources, the ingesters, the bounds; `done` is called with each.

    `has` says by name which sources and slices of sources are to be read here, where others read the rest.
    """

    place: Place
    sources: Sequence[Source]
    ingesters: Sequence[Ingester]
    limits: Limits
    done: Callable[[Source], None] | None = None
    engine: Map = one_by_one
    has: Callable[[str], bool] | None = None


class Stored(Struct, frozen=True):
    """A run in the store: its tables, file by file and lazily, and the account of its sources, in their order."""

    tables: tuple[tuple[str, pl.LazyFrame], ...]
    files: tuple[FileCoverage, ...]
    issues: tuple[Issue, ...]


def ingest_to_disk(job: Job, place: Path, ages: Ages = AGES) -> Stored:
    """Bring the store of the run under `place` up to date, and give its contents.

    Raises `PlaceError` when the place cannot be written to.
    """
    home = place / run_key(job.place, device_only=job.limits.device_only)
    try:
        shelf.make_home(home)
        found = _Plan(job, home)
        held = found.published()
        shelf.sweep(home, held.name, ages)
    except OSError as error:  # what a source raises became its issue: this is the store's
        raise PlaceError(f"the store {os.fspath(place)!r}", error) from error
    return _stored(parts.scanned(home / held.name, held.manifest), held.manifest.sources, found.notes)


def ingest_to_packs(job: Job, place: Path) -> Stored:
    """Read some sources of a run into packs under `place`, where whoever reads the run as a whole finds them.

    Gives the entries of these sources. Raises `PlaceError` when the place cannot be written to.
    """
    home = place / run_key(job.place, device_only=job.limits.device_only)
    try:
        shelf.make_home(home)
        plan = _Plan(job, home)
        plan.read()
    except OSError as error:
        raise PlaceError(f"the store {os.fspath(place)!r}", error) from error
    found = [one for source in job.sources for one in plan.of(source)]
    tables = compact.scanned(home, [one.pieces for one in found])
    return _stored(tables, [one.entry for one in found], plan.notes)


def _stored(tables: Iterable[tuple[str, pl.LazyFrame]], entries: Sequence[Entry], notes: Sequence[Issue]) -> Stored:
    issues = (*notes, *(issue for entry in entries for issue in entry.issues))
    return Stored(tuple(tables), tuple(entry.coverage for entry in entries), issues)


class _Plan(Struct):
    """The entry of each source, from the current generation, from packs, and from this reading."""

    job: Job
    home: Path
    current: Held | None = None
    notes: list[Issue] = field(default_factory=list[Issue])
    found: dict[str, Found] = field(default_factory=dict[str, Found])
    told: set[str] = field(default_factory=set[str])
    sliced: dict[str, Sliced | None] = field(default_factory=dict[str, "Sliced | None"])
    now: dict[str, str] = field(default_factory=dict[str, str])
    readers: str = ""
    known: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Name the readers once: each of thousands of sources is compared with them."""
        self.readers = unit.readers(self.job.ingesters)
        self.known = frozenset(("", *(reader.name for reader in self.job.ingesters)))

    def published(self) -> Held:
        """Read the missing sources, and give the generation that holds the run."""
        for _ in range(_ROUNDS):
            self.read()
            try:
                return self._generation()
            except InputError as error:  # somebody damaged or cleared a folder after it was checked
                self.found.clear()
                self.sliced.clear()
                self._doubt("store", error)
        raise PlaceError(f"the store {os.fspath(self.home)!r}", OSError("files of it change while it is used"))

    def read(self) -> None:
        """Find the stored sources, and read the others."""
        self.current = self._current()
        self.now = {one.path: stamps.stamp_of(self.job.place, one, self.job.ingesters) for one in self.job.sources}
        asked = self._matched(self.job.sources)
        for _ in range(_ROUNDS):
            if not asked:
                return
            asked = self._mapped(asked)
        raise PlaceError(f"the store {os.fspath(self.home)!r}", OSError("what was just written cannot be read"))

    def of(self, source: Source) -> list[Found]:
        """The findings for a source: its whole, or the slices read here."""
        sliced, has = self.sliced.get(source.path), self.job.has
        if sliced is not None:
            return [sliced.found[n] for n in sorted(sliced.found) if has is None or has(joining.name_of(source, n))]
        return [self.found[source.path]] if has is None or has(source.path) else []

    def _doubt(self, source: str, error: InputError) -> None:
        message = f"the store was not believed, and the run was read again: {error.message}"
        self.notes.append(Issue(source, UNUSABLE, message))

    def _current(self) -> Held | None:
        try:
            held = shelf.current(self.home)
        except InputError as error:
            self._doubt("store", error)
            return None
        return held if held is not None and manifest.is_ours(held.manifest) else None

    def _folders(self, left: Mapping[str, Source]) -> Iterator[Held]:
        """The current generation, and the packs, which are looked at only where it does not hold all."""
        if self.current is not None:
            yield self.current
        for held in shelf.packs(self.home, lambda name: self._may_help(name, left)):
            if manifest.is_ours(held.manifest):
                yield held

    def _may_help(self, pack: str, left: Mapping[str, Source]) -> bool:
        """Whether a pack may hold more than was found already: of a source with older rows only those of its stamp."""
        if not left.keys() <= self.found.keys():
            return True
        said = stamps.read(self.home, pack)
        return any(path in said and said[path] == self.now[path] for path in left)

    def _matched(self, sources: Sequence[Source]) -> list[Asked]:
        """Take the entries of unchanged sources; give the sources left to read, or at least to hash."""
        left = {source.path: source for source in sources}
        for held in self._folders(left):
            for path, one in self._usable(held, left).items():
                if not one.stamp or one.stamp != self.now[path]:
                    self.found.setdefault(path, one)
                elif self._is_taken(left[path], one):
                    del left[path]
            if not left:
                break
        return [Asked(one, self.found[path].entry.sha256 if path in self.found else "") for path, one in left.items()]

    def _usable(self, held: Held, wanted: Mapping[str, Source]) -> dict[str, Found]:
        """The entries of the wanted sources in a folder, after a check of its files."""
        if not any(entry.source in wanted for entry in held.manifest.sources):
            return {}
        said, placed = stamps.read(self.home, held.name), held.placed()
        found: dict[str, Found] = {}
        for entry, own in placed:
            source = wanted.get(entry.source)
            if source is None or entry.slice is not None or not entry.sha256:
                continue
            if entry.versions == unit.versions(self.readers, self.job.limits, source):
                found[entry.source] = Found(entry, held.name, own, said.get(entry.source, ""))
        bad = shelf.damaged(self.home, placed, found.keys())
        for path, error in itertools.islice(bad.items(), 1):
            self._doubt(path, error)
        if found:
            shelf.touch(self.home / held.name)
        return {path: one for path, one in found.items() if path not in bad}

    def _is_taken(self, source: Source, one: Found) -> bool:
        """Take an entry of unchanged content, unless it says what is known to be otherwise."""
        entry = one.entry
        if entry.coverage.size_bytes != source.size_bytes or len(entry.issues) > self.job.limits.issues:
            self._doubt(source.path, InputError("what it says of the file is not so"))
        elif entry.coverage.ingester not in self.known:
            self._doubt(source.path, InputError("it was read by nobody known"))
        else:
            self._take(source, one)
            return True
        return False

    def _take(self, source: Source, one: Found) -> None:
        self.found[source.path] = one
        if self.job.done is not None and source.path not in self.told:
            self.told.add(source.path)
            self.job.done(source)

    def _mapped(self, asked: Sequence[Asked]) -> list[Asked]:
        """Let every source be read; give those whose rows could not be taken over."""
        again: list[Asked] = []
        every = [replace(part, stamp=self.now[part.source.path]) for one in asked for part in self._parts(one)]
        items = unit.items(unit.address(self.job.place), self.home.absolute(), every, self.job.limits)
        for outcome in self.job.engine(unit.read, items):
            if isinstance(outcome, Lost):
                for one in outcome.item.asked:
                    self.sliced[one.source.path] = None
                    self._take(one.source, Found(self._lost(one.source, outcome.why)))
            else:
                again += self._recorded(*outcome)
        if self.job.has is None:
            whole = (self._joined(one) for one in list(self.sliced.values()) if one is not None)
            again += (one for one in whole if one is not None)
        return list(dict.fromkeys(again))

    def _parts(self, asked: Asked) -> list[Asked]:
        """A source to read, or its missing slices; nothing that others read."""
        source, has = asked.source, self.job.has
        if not asked.sha256 and source.path not in self.sliced:
            job = self.job
            versions = unit.versions(self.readers, job.limits, source)
            known = joining.known(self.home, source, versions, self.now[source.path])
            self.sliced[source.path] = joining.planned(job.place, source, job.ingesters, job.limits, known)
        sliced = self.sliced.get(source.path)
        if sliced is not None:
            missing = sliced.missing()
            return [m for m in missing if has is None or m.part is None or has(joining.name_of(source, m.part.number))]
        return [asked] if has is None or has(source.path) else []

    def _joined(self, sliced: Sliced) -> Asked | None:
        """Put a source together whose slices are all there; give it to be read as one where they do not fit."""
        if sliced.missing():
            return None
        source = sliced.source
        try:
            found = joining.published(self.home, sliced, self.job.limits, self.job.ingesters)
        except InputError as error:
            self._doubt(source.path, error)
            del self.sliced[source.path]
            return Asked(source)
        self.sliced[source.path] = None
        if found is not None:
            self._take(source, found)
        return Asked(source) if found is None else None

    def _lost(self, source: Source, why: str) -> Entry:
        known = unit.versions(self.readers, self.job.limits, source)
        return unit.lost(source, known, f"{UNREADABLE}: {why}", Issue(source.path, DIED, why))

    def _recorded(self, item: Item, record: Record) -> list[Asked]:
        """Take over the result of an item; give its failed sources."""
        left = {one.source.path: one.source for one in item.asked}
        for path, stamp in record.unchanged.items():
            if path in left and self._is_taken(left[path], replace(self.found[path], stamp=stamp)):
                del left[path]
        if record.pack and left:
            try:
                self._from_pack(record.pack, left)
            except InputError as error:
                self._doubt(next(iter(left)), error)
        return [Asked(source) for source in left.values()]

    def _from_pack(self, name: str, left: dict[str, Source]) -> None:
        held = shelf.opened(self.home, name)
        said = stamps.read(self.home, name)
        placed = held.placed()
        bad = shelf.damaged(self.home, placed, left.keys(), rows=False)
        for entry, own in placed:
            if entry.source not in left or entry.source in bad:
                continue
            if entry.slice is not None:
                found = Found(entry, name, own, said.get(entry.source, ""))
                sliced = self.sliced.get(entry.source)
                if sliced is not None and sliced.take(found):
                    del left[entry.source]
            else:
                self._take(left.pop(entry.source), Found(entry, name, own, said.get(entry.source, "")))
        for path, error in itertools.islice(bad.items(), 1):
            self._doubt(path, error)

    def _generation(self) -> Held:
        """Publish the entries as the current generation, unless it holds them already."""
        every = [self.found[source.path] for source in self.job.sources]
        seen = {one.entry.source: one.stamp for one in every if one.stamp}
        held = self.current
        if held is None or [(held.name, e) for e in held.manifest.sources] != [(o.folder, o.entry) for o in every]:
            held = self._put_together(every)
        if stamps.read(self.home, held.name) != seen:
            stamps.write(self.home / held.name, seen)
        return held

    def _put_together(self, every: Sequence[Found]) -> Held:
        work = shelf.begun(self.home)
        try:
            made = compact.compacted(self.home, work, [one.pieces for one in every], self.job.limits.part_rows)
            held = shelf.publish(self.home, work, [one.entry for one in every], made, manifest.GENERATION)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        shelf.point(self.home, held.name)
        return held
