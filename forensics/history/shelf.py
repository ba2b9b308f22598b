"""The folder of a history: files of lines that are only ever added, each named by a hash of what it holds.

Lines of JSON and no Parquet: each file is written once, by whom and whenever, and its name says whether it is whole.
Two that write the same write one file; nobody waits for anybody, and nothing is ever replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from msgspec import Struct, field

from forensics.errors import InputError, PlaceError, UsageError
from forensics.history.past import Past, line_of, past_in
from forensics.io.atomic import write_atomic
from forensics.io.opening import open_regular
from forensics.io.places.bucket import Bucket
from forensics.io.places.named import Where, place_of
from forensics.io.places.place import Place
from forensics.io.places.written import written_once

_ENDING = ".diagnoses.jsonl"
_HASH_CHARS = 32
#: A bucket answers a request in 10 to 50 ms; a fleet adds an object for each run, on a cluster for eight of them.
_REQUESTS_AT_ONCE = 16
#: A file of one triage holds a line a run; of more bytes than this none is read.
_MOST_BYTES = 64 << 20
_MOST_FILES = 1_000_000


class History(Struct, frozen=True):
    """What a history holds, and how many of its files or lines could not be used."""

    past: tuple[Past, ...] = ()
    unusable: int = 0
    _by_root: Mapping[str, tuple[Past, ...]] = field(default_factory=dict[str, tuple[Past, ...]])

    def alike(self, root: str) -> tuple[Past, ...]:
        """Give the diagnoses of one root, in their order."""
        return self._by_root.get(root, ())


def kept(where: Where, past: Sequence[Past]) -> None:
    """Add diagnoses to a history; its folder is made if it is missing. In a bucket it is a prefix.

    Raises `PlaceError` when the place cannot be made or written to.
    """
    data = b"".join(line_of(one) for one in sorted(past, key=lambda one: (one.run, one.key)))
    if not data:
        return
    name = f"{hashlib.sha256(data).hexdigest()[:_HASH_CHARS]}{_ENDING}"
    place = place_of(where)
    if isinstance(place, Bucket):
        written_once(place.below(name), data)
        return
    folder = _folder(place)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlaceError(f"the history {str(folder)!r}", error) from error
    with suppress(UsageError):  # it is there already: somebody judged the same at the same time
        write_atomic(folder / name, data, force=False)


def history(where: Where) -> History:
    """Read a history; a place that is not there holds nothing yet.

    Raises `PlaceError` when the place cannot be listed.
    """
    found: list[Past] = []
    unusable = 0
    place = place_of(where)
    for data in _stored(place) if isinstance(place, Bucket) else map(_whole, _files(_folder(place))):
        lines = [past_in(line) for line in data.splitlines()] if data is not None else [None]
        found += [one for one in lines if one is not None]
        unusable += lines.count(None)
    past = sorted(found, key=lambda one: (one.ended_ns, one.run, one.judged_ns))
    by_root = groupby(sorted(past, key=lambda one: one.root), key=lambda one: one.root)
    return History(tuple(past), unusable, {root: tuple(own) for root, own in by_root})


def _folder(place: Place) -> Path:
    assert place.folder is not None
    return place.folder


def _stored(place: Bucket) -> Iterator[bytes | None]:
    """The objects of a history in the order of their names; None for one that is not what its name says."""
    own = sorted((one for one in place.files if one.prefix.endswith(_ENDING)), key=lambda one: one.prefix)
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as threads:
        yield from threads.map(_object, own[:_MOST_FILES])


def _object(one: Bucket) -> bytes | None:
    try:
        data = one.client.whole(one.prefix, _MOST_BYTES)
    except InputError:
        return None
    return data if data is not None and _is_whole(data, one.prefix.rpartition("/")[2]) else None


def _is_whole(data: bytes, name: str) -> bool:
    return hashlib.sha256(data).hexdigest()[:_HASH_CHARS] == name.removesuffix(_ENDING)


def _files(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(path.name for path in folder.iterdir() if path.name.endswith(_ENDING))
    except FileNotFoundError:
        return
    except OSError as error:
        raise PlaceError(f"the history {str(folder)!r}", error) from error
    yield from (folder / name for name in names[:_MOST_FILES])


def _whole(path: Path) -> bytes | None:
    """The bytes of a file that is what its name says; None for any other."""
    try:
        fd, found = open_regular(str(path))
    except InputError:
        return None
    with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor that was opened without following a link
        data = file.read(_MOST_BYTES + 1) if found.st_size <= _MOST_BYTES else b""
    return data if _is_whole(data, path.name) else None
