"""A folder of results, published by one rename; a folder that we did not write is never replaced."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from forensics.errors import PlaceError, UsageError


def write_folder(place: Path, files: Mapping[str, bytes], marker: str, *, force: bool) -> None:
    """Write `files` (relative path → content) as the folder `place`: all of them or none.

    With `force` an old folder is replaced, but only one that holds the file `marker`, which `files` must have. Raises
    `UsageError` when the place is taken, or cannot be written to.
    """
    _check(place, marker, force=force)
    work = place.with_name(f".{place.name[:200]}.{secrets.token_hex(6)}.tmp")
    old = work.with_suffix(".old")
    try:
        try:
            work.mkdir()
            for name, data in files.items():
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
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
