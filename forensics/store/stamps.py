"""A stamp of a file from its place: an unchanged stamp means an unchanged file, without reading it.

A stamp is size, time of the last write, time of the last change of its entry, and number of the file. The time of the
change is the kernel's: neither `touch` nor a copy with its times sets it. The stamp of an object is its ETag, which the
service makes for each upload. Stamps are beside the manifest of a folder of the store and are no part of its content:
without them every file is hashed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from forensics.errors import InputError
from forensics.io.places.place import Place
from forensics.model import Source
from forensics.registry import Ingester
from forensics.store import parts

NAME = "stamps.json"
_NEW = "new"
#: A file that was just written to may be written to again within one tick of its clock: 2 s on FAT, the coarsest.
_TICK_NS = 2_000_000_000
_MOST_BYTES = 256 << 20


def stamp_of(place: Place, source: Source, ingesters: Sequence[Ingester]) -> str:
    """Give the stamp of a file, and of those that are read with it; nothing where no place tells enough."""
    root = place.folder
    if root is None:
        said = [place.tag(one) for one in _beside(source.disk_path or source.path, ingesters)]
        return ";".join(said) if said[0] else ""
    is_folder = root.is_dir()
    path = os.fspath(root / (source.disk_path or source.path) if is_folder else root)
    said = [_said(one, follow=not is_folder) for one in _beside(path, ingesters)]
    return ";".join(said) if said[0] and _NEW not in said else ""


def _beside(path: str, ingesters: Sequence[Ingester]) -> list[str]:
    """A file, and those that are read with it."""
    ends = sorted({pair for one in ingesters for pair in one.beside if path.endswith(pair[0])})
    return [path, *(path.removesuffix(end) + other for end, other in ends)]


def _said(path: str, *, follow: bool) -> str:
    """The stamp of one file: empty without one, `new` when it was written to just now."""
    try:
        seen = os.stat(path, follow_symlinks=follow)  # noqa: PTH116 - a Path would normalise odd names
    except (OSError, ValueError):
        return ""
    if time.time_ns() - max(seen.st_mtime_ns, seen.st_ctime_ns) < _TICK_NS:
        return _NEW
    return f"{seen.st_size}-{seen.st_mtime_ns}-{seen.st_ctime_ns}-{seen.st_ino}"


def write(folder: Path, stamps: Mapping[str, str]) -> None:
    """Write the stamps of the sources of a folder, by their paths."""
    pending = folder / f".{NAME}-{os.urandom(8).hex()}"
    pending.write_bytes(msgspec.json.encode(stamps))
    pending.replace(folder / NAME)


def read(home: Path, folder: str) -> Mapping[str, str]:
    """Give the stamps of a folder of the store; none where they cannot be used."""
    with suppress(InputError, msgspec.MsgspecError, ValueError, RecursionError):
        return msgspec.json.decode(parts.content(home, f"{folder}/{NAME}", _MOST_BYTES), type=dict[str, str])
    return {}
