"""Generations of one run's tables, side by side: published by a rename, never changed, and removed by age alone.

Any number of processes and machines may use one store; there is no lock. A generation is named by the hash of its
manifest, so the same content has one name, and whoever comes second keeps the first. `CURRENT` is replaced by a
rename. Nobody removes what another may be reading: only what nobody has used for a long time.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from forensics.errors import InputError
from forensics.store import manifest, parts
from forensics.store.manifest import Entry, Manifest

CURRENT = "CURRENT"
_WORK = ".building-"
_STALE = ".stale-"
_POINTER = f".{CURRENT}-"
_TRIES = 100
_TAKEN = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}


@dataclass(frozen=True, slots=True)
class Ages:
    """Seconds without use after which something is removed.

    `generation_s`: an old generation; 7 days, as no run is read for so long. `work_s`: what a killed process left; a
    day, as a folder is touched whenever the next source is read.
    """

    generation_s: float = 7 * 86_400
    work_s: float = 86_400


AGES = Ages()


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation: its folder, and its manifest."""

    folder: Path
    manifest: Manifest


def make_home(home: Path) -> None:
    """Make the folder of a run; what bears its name and is no folder is set aside.

    Raises:
        OSError: when the place cannot be written to.
    """
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            home.mkdir(parents=True)
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(home.lstat().st_mode):
                return
            home.rename(home.with_name(_aside()))
    raise FileExistsError(errno.EEXIST, "is taken", os.fspath(home))


def current(home: Path) -> Generation | None:
    """Give the generation that is to be read; None where nothing was published yet.

    Raises:
        InputError: when something is there that cannot be used.
    """
    if not os.path.lexists(home / CURRENT):
        return None
    name = parts.content(home, CURRENT, len(manifest.name_of(b""))).decode("ascii", "replace")
    if not manifest.is_generation(name):
        raise InputError("its pointer names no generation")
    with suppress(
        OSError
    ):  # before it is looked at, so that it is young when somebody removes the old; not our own: no
        os.utime(home / name, follow_symlinks=False)
    data = parts.content(home, f"{name}/{manifest.NAME}", manifest.MOST_BYTES)
    if manifest.name_of(data) != name:
        raise InputError("its manifest has another checksum")
    return Generation(home / name, manifest.decoded(data))


def begun(home: Path) -> Path:
    """Make a folder to build a generation in."""
    work = home / f"{_WORK}{secrets.token_hex(8)}"
    work.mkdir()
    return work


def publish(home: Path, work: Path, entries: Sequence[Entry]) -> Path:
    """Make `work` the current generation; where its content is there already, and sound, that one stays.

    Raises:
        OSError: when the place cannot be written to.
    """
    for copy in range(_TRIES):
        data = manifest.encoded(entries, copy)
        final = home / manifest.name_of(data)
        (work / manifest.NAME).write_bytes(data)
        try:
            work.rename(final)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            if not _is_sound(home, final.name, data, entries):
                continue
            shutil.rmtree(work, ignore_errors=True)
        _point(home, final.name)
        return final
    raise FileExistsError(errno.EEXIST, "every name is taken by a damaged generation", os.fspath(home))


def sweep(home: Path, keep: str, ages: Ages = AGES) -> None:
    """Remove what nobody has used for longer than `ages`, but never `keep` nor the current generation."""
    with suppress(OSError, InputError):
        used = {keep, parts.content(home, CURRENT, 1 << 10).decode("ascii", "replace")}
        now = time.time()
        for found in list(os.scandir(home)):
            if found.name.startswith((_WORK, _STALE, _POINTER)):
                most = ages.work_s
            elif manifest.is_generation(found.name) and found.name not in used:
                most = ages.generation_s
            else:
                continue
            with suppress(OSError):
                if now - found.stat(follow_symlinks=False).st_mtime >= most:
                    _remove(home, Path(found.path))


def _is_sound(home: Path, name: str, data: bytes, entries: Sequence[Entry]) -> bool:
    with suppress(OSError):
        os.utime(home / name, follow_symlinks=False)
    try:
        if parts.content(home, f"{name}/{manifest.NAME}", manifest.MOST_BYTES) != data:
            return False
        for index, entry in enumerate(entries):
            parts.check(home, name, index, entry)
    except InputError:
        return False
    return True


def _point(home: Path, name: str) -> None:
    pointer = home / f"{_POINTER}{secrets.token_hex(8)}"
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
    return f"{_STALE}{secrets.token_hex(8)}"
