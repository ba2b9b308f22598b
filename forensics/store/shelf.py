"""Folders of one run's tables, side by side: published by a rename, never changed, and removed by age alone.

A pack holds what one process read of some sources; a generation holds the whole run, put together from packs and from
the generation before it. Any number of processes and machines may use one store; there is no lock. A folder is named
by the hash of its manifest, so the same content has one name, and whoever comes second keeps the first. `CURRENT` is
replaced by a rename. Nobody removes what another may be reading: only what nobody has used for a long time.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from forensics.errors import InputError
from forensics.store import manifest, parts
from forensics.store.manifest import Entry, Manifest, Part
from forensics.store.parts import Piece

CURRENT = "CURRENT"
_WORK = ".building-"
_STALE = ".stale-"
_POINTER = f".{CURRENT}-"
_TRIES = 100
_KINDS = (manifest.GENERATION, manifest.PACK)
_TAKEN = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}


class Ages(Struct, frozen=True):
    """Seconds without use after which something is removed.

    `generation_s`: a pack, or an old generation; 7 days, as no run is read for so long. `work_s`: what a killed process
    left; a day, as a folder is touched whenever the next source is read.
    """

    generation_s: float = 7 * 86_400
    work_s: float = 86_400


AGES = Ages()


class Held(Struct, frozen=True):
    """One folder of the store: its name, and its manifest."""

    name: str
    manifest: Manifest

    def placed(self) -> list[tuple[Entry, list[Piece]]]:
        """Each source, in their order, and where its rows are."""
        return list(zip(self.manifest.sources, parts.pieces(self.name, self.manifest), strict=True))


def make_home(home: Path) -> None:
    """Make the folder of a run; what bears its name and is no folder is set aside.

    Raises `OSError` when the place cannot be written to.
    """
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            home.mkdir(parents=True)
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(home.lstat().st_mode):
                return
            home.rename(home.with_name(_aside()))
    raise FileExistsError(errno.EEXIST, "is taken", os.fspath(home))


def current(home: Path) -> Held | None:
    """Give the generation that is to be read; None where nothing was published yet.

    Raises `InputError` when something is there that cannot be used.
    """
    if not os.path.lexists(home / CURRENT):
        return None
    name = parts.content(home, CURRENT, len(manifest.name_of(b""))).decode("ascii", "replace")
    if not manifest.is_folder(name):
        raise InputError("its pointer names no generation")
    return opened(home, name)


def opened(home: Path, name: str) -> Held:
    """Give a folder whose name was found in the store, or was told by who published it.

    Raises `InputError` when it cannot be used.
    """
    touch(home / name)  # before it is looked at, so that it is young when somebody removes the old
    return _seen(home, name)


def _seen(home: Path, name: str) -> Held:
    kind = name.partition("-")[0]
    if not manifest.is_folder(name, kind):
        raise InputError("is no folder of a store")
    data = parts.content(home, f"{name}/{manifest.NAME}", manifest.MOST_BYTES)
    if manifest.name_of(data, kind) != name:
        raise InputError("its manifest has another checksum")
    return Held(name, manifest.decoded(data))


def packs(home: Path, is_wanted: Callable[[str], bool] = lambda _: True) -> Iterator[Held]:
    """Give every pack that can be used and whose name is wanted; one that was damaged holds nothing."""
    with suppress(OSError):
        for name in sorted(entry.name for entry in os.scandir(home)):
            if manifest.is_folder(name, manifest.PACK) and is_wanted(name):
                with suppress(InputError):
                    yield _seen(home, name)


def touch(folder: Path) -> None:
    """Make a folder young."""
    with suppress(OSError):  # it may not be our own
        os.utime(folder, follow_symlinks=False)


def begun(home: Path) -> Path:
    """Make a folder to build a generation in."""
    work = home / f"{_WORK}{os.urandom(8).hex()}"
    work.mkdir()
    return work


def publish(home: Path, work: Path, entries: Sequence[Entry], written: Sequence[Part], kind: str) -> Held:
    """Give `work` its name; where its content is there already, and sound, that one stays.

    Raises `OSError` when the place cannot be written to.
    """
    for copy in range(_TRIES):
        content = manifest.manifest_of(entries, written, copy)
        data = manifest.encoded(content)
        final = home / manifest.name_of(data, kind)
        (work / manifest.NAME).write_bytes(data)
        try:
            work.rename(final)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            if not _is_sound(home, final.name, data):
                continue
            shutil.rmtree(work, ignore_errors=True)
        return Held(final.name, content)
    raise FileExistsError(errno.EEXIST, "every name is taken by a damaged folder", os.fspath(home))


def sweep(home: Path, keep: str, ages: Ages = AGES) -> None:
    """Remove folders unused for longer than `ages`, but never `keep` nor the current generation."""
    with suppress(OSError, InputError):
        used = {keep, parts.content(home, CURRENT, 1 << 10).decode("ascii", "replace")}
        now = time.time()
        for found in list(os.scandir(home)):
            if found.name.startswith((_WORK, _STALE, _POINTER)):
                most = ages.work_s
            elif any(manifest.is_folder(found.name, kind) for kind in _KINDS) and found.name not in used:
                most = ages.generation_s
            else:
                continue
            with suppress(OSError):
                if now - found.stat(follow_symlinks=False).st_mtime >= most:
                    _remove(home, Path(found.path))


def damaged(
    home: Path, placed: Sequence[tuple[Entry, Sequence[Piece]]], wanted: Container[str], *, rows: bool = True
) -> dict[str, InputError]:
    """Check the files with rows of the wanted sources; give the sources whose rows cannot be used, and why.

    `placed` are all sources of a folder. Without `rows` only bytes are held against their checksums: enough where who
    wrote the folder told its name, which is the hash of the manifest that holds them.
    """
    files: dict[str, list[tuple[str, Piece]]] = {}
    for entry, own in placed:
        for piece in own:
            files.setdefault(piece.file, []).append((entry.source, piece))
    found: dict[str, InputError] = {}
    for several in files.values():
        if any(source in wanted for source, _ in several):
            try:
                parts.check(home, several, rows=rows)
            except InputError as error:
                found |= dict.fromkeys((source for source, _ in several if source in wanted), error)
    return found


def _is_sound(home: Path, name: str, data: bytes) -> bool:
    touch(home / name)
    try:
        if parts.content(home, f"{name}/{manifest.NAME}", manifest.MOST_BYTES) != data:
            return False
    except InputError:
        return False
    held = Held(name, manifest.decoded(data))
    return not damaged(home, held.placed(), {entry.source for entry in held.manifest.sources})


def point(home: Path, name: str) -> None:
    """Make a generation the current one."""
    pointer = home / f"{_POINTER}{os.urandom(8).hex()}"
    with pointer.open("x", encoding="ascii") as file:
        file.write(name)
    try:
        pointer.replace(home / CURRENT)
    except IsADirectoryError:  # nobody but a stranger made a folder of it
        (home / CURRENT).rename(home / _aside())
        pointer.replace(home / CURRENT)


def _remove(home: Path, path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it: out of sight first, then for good."""
    if not stat.S_ISDIR(path.lstat().st_mode):
        path.unlink()
        return
    if not path.name.startswith(_STALE):
        path = path.rename(home / _aside())
    shutil.rmtree(path, ignore_errors=True)


def _aside() -> str:
    return f"{_STALE}{os.urandom(8).hex()}"
