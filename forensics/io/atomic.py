"""Results written whole or not at all: a temporary file or folder beside the place, flushed to disk, then renamed.

A folder that we did not write is never replaced.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from forensics.errors import PlaceError, UsageError


def _refuse(path: Path, why: str, help_line: str) -> UsageError:
    return UsageError(f"{os.fspath(path)!r}: {why}", help=help_line)


def _is_special(path: Path, *, force: bool) -> bool:
    """True for a pipe or a device, which is written to; raises where a file would be lost."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if path.is_dir():
        raise _refuse(path, "is a folder", f"name a file: -o {path / 'report.json'}")
    if stat.S_ISREG(found.st_mode) or (stat.S_ISLNK(found.st_mode) and (path.is_file() or not path.exists())):
        if not force:
            raise _refuse(path, "exists already", f"forensics … -o {path} --force")
        return False
    return True


def _publish(temporary: Path, path: Path, *, force: bool) -> None:
    if force:
        temporary.replace(path)
        return
    try:
        path.hardlink_to(temporary)  # unlike a rename, it fails where the name was taken meanwhile
    except FileExistsError as error:
        raise _refuse(path, "exists already", f"forensics … -o {path} --force") from error
    except OSError:  # a file system without hard links
        temporary.rename(path)
        return
    temporary.unlink()


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot flush a folder; the file itself is safe
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def write_atomic(path: Path, data: bytes, *, force: bool) -> None:
    """Write a result; a reader sees the old file or the new one, never a part, and a failure leaves no trace.

    A pipe or a device (`/dev/stdout`) is written to directly. Raises `UsageError` when the file exists and `force` is
    not given, or when the place cannot be written to.
    """
    try:
        if _is_special(path, force=force):
            path.write_bytes(data)
            return
        temporary = path.with_name(f".{path.name[:200]}.{os.urandom(6).hex()}.tmp")
        try:
            _write(temporary, data)
            _publish(temporary, path, force=force)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except (OSError, ValueError) as error:
        place = f"{os.fspath(path)!r} cannot be written"
        raise PlaceError(place, error) from error


def write_folder(place: Path, files: Mapping[str, bytes], marker: str, *, force: bool) -> None:
    """Write `files` (relative path → content) as the folder `place`: all of them or none.

    With `force` an old folder is replaced, but only one that holds the file `marker`, which `files` must have. Raises
    `UsageError` when the place is taken, or cannot be written to.
    """
    _check(place, marker, force=force)
    work = place.with_name(f".{place.name[:200]}.{os.urandom(6).hex()}.tmp")
    old = work.with_suffix(".old")
    try:
        try:
            work.mkdir()
            for name, data in files.items():
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                _write(work / name, data)
            if place.exists():
                place.rename(old)
            try:
                work.rename(place)
            except OSError:
                if old.exists():
                    old.rename(place)
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        refused = f"{os.fspath(place)!r} cannot be written"
        raise PlaceError(refused, error) from error


def _check(place: Path, marker: str, *, force: bool) -> None:
    if not place.exists() and not place.is_symlink():
        return
    if place.is_symlink() or not place.is_dir():
        message = f"{os.fspath(place)!r}: is no folder"
        raise UsageError(message, help=f"name a new folder: -o {place}-export")
    if not any(place.iterdir()):
        return
    if not (place / marker).is_file():
        message = f"{os.fspath(place)!r}: holds files that are no export of forensics"
        raise UsageError(message, help=f"name a new folder: -o {place / 'export'}")
    if not force:
        message = f"{os.fspath(place)!r}: exists already"
        raise UsageError(message, help=f"forensics … -o {place} --force")


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
