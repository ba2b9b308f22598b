"""The one way to open a file of a run: a regular file, read-only, no link followed, its times untouched."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from forensics.errors import EXHAUSTED, InputError, PlaceError

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_NOATIME: int = getattr(os, "O_NOATIME", 0)

_KINDS = (
    (stat.S_ISLNK, "link"),
    (stat.S_ISFIFO, "fifo"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
    (stat.S_ISDIR, "folder"),
)


def kind_of(mode: int) -> str:
    """Name the kind of a mode of `stat`: `file`, `folder`, `pipe` and the like."""
    return next((name for test, name in _KINDS if test(mode)), "file" if stat.S_ISREG(mode) else "unknown kind")


def _open(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | _NOATIME)
    except PermissionError:  # O_NOATIME is for the owner only
        return os.open(path, flags)


def open_regular(path: str, *, follow: bool = False) -> tuple[int, os.stat_result]:
    """Open a regular file for reading and return its descriptor and its stat; the caller closes it.

    `follow` is for a path that the user typed; a path found in a run is never followed. Raises `InputError` when it is
    gone, unreadable, or anything but a regular file; `PlaceError` when the system lets this program open no more files.
    """
    try:
        fd = _open(path, _FLAGS if follow else _FLAGS | os.O_NOFOLLOW)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in EXHAUSTED:
            raise PlaceError(path, error) from error
        msg = f"cannot be opened: {getattr(error, 'strerror', None) or error}"
        raise InputError(msg) from error
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        msg = f"is a {kind_of(found.st_mode)}, not a file"
        raise InputError(msg)
    return fd, found


def inside(root: Path, relative: str) -> str:
    """The path of a run's file, after a check that no folder on the way leads out of the run.

    Raises `InputError` when the path is absolute, climbs, or passes through a link.
    """
    parts = relative.split("/")
    if relative.startswith("/") or ".." in parts or "\0" in relative:
        raise InputError("its path leads out of the run")
    top = os.path.realpath(root)
    folder = os.path.join(top, *parts[:-1])  # noqa: PTH118 - a Path would normalise odd names
    if os.path.realpath(folder) != folder.rstrip("/"):
        raise InputError("a folder on its path is a link")
    return os.path.join(folder, parts[-1])  # noqa: PTH118
