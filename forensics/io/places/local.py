"""A folder, or a file, of this machine: walked without following links, opened by `io.opening`."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from forensics.errors import EXHAUSTED, PlaceError, UsageError
from forensics.io.disk import OpenFile
from forensics.io.limits import Limits
from forensics.io.opening import inside, kind_of, open_regular
from forensics.io.places.place import Found, Seen
from forensics.model import UNREADABLE

_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_NOT_OURS = frozenset({errno.EACCES, errno.EPERM})


def _refusal(path: str, error: OSError) -> PlaceError:
    """What the system says of a run that it does not let us look at: another place to write helps nobody."""
    look = f"ls -ld {shlex.quote(path)} shows who may read it" if error.errno in _NOT_OURS else ""
    return PlaceError(path, error, help=look)


class Local(Struct, frozen=True):
    """The place at a path of this machine."""

    path: Path

    @property
    def name(self) -> str:
        """The path as the user wrote it."""
        return str(self.path)

    @property
    def identity(self) -> bytes:
        """The absolute path."""
        return os.fsencode(self.path.absolute())

    @property
    def folder(self) -> Path:
        """The path."""
        return self.path

    def looked_through(self, limits: Limits) -> Found:
        """Walk the folder; links, pipes, sockets and devices are passed over.

        Raises `UsageError` when the path does not exist; `PlaceError` when it cannot be looked at, or its entries
        cannot be listed.
        """
        try:
            seen = self.path.stat()
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno not in _NOTHING_THERE:
                raise _refusal(self.name, error) from error
            message = f"no such file or directory: {self.path}"
            there = next(parent for parent in (*self.path.absolute().parents, Path("/")) if parent.is_dir())
            raise UsageError(message, help=f"ls {shlex.quote(str(there))}") from error
        return _walked(self.path, limits) if stat.S_ISDIR(seen.st_mode) else _alone(self.path, seen)

    def refused(self, path: str) -> str:
        """Ask the system for the permission to read."""
        return "" if os.access(self._at(path), os.R_OK) else f"{UNREADABLE}: Permission denied"

    @contextmanager
    def opened(self, path: str) -> Generator[OpenFile]:
        """Open a file of the folder, through no link; a file that the user named is followed to where it is."""
        is_folder = self.path.is_dir()
        fd, found = open_regular(inside(self.path, path) if is_folder else self.name, follow=not is_folder)
        try:
            yield OpenFile(fd, found.st_size)
        finally:
            os.close(fd)

    def seen(self, path: str) -> Seen | None:
        """Ask the system."""
        try:
            return _seen(path, self._at(path).stat())
        except (OSError, ValueError):
            return None

    def tag(self, path: str) -> str:
        """Nothing: a file system has no name for content."""
        del path
        return ""

    def holding(self, path: str) -> tuple[Local, str]:
        """The folder itself, or that of the file."""
        if self.path.is_dir():
            return self, path
        real = Path(os.path.realpath(self.path))
        return Local(real.parent), real.name

    def below(self, folder: str) -> Local:
        """A folder of this folder."""
        return Local(self.path / folder)

    def _at(self, path: str) -> Path:
        return self.path / path if self.path.is_dir() else self.path


def unicode_path(path: str) -> str:
    r"""The path with bytes that are no UTF-8 written as `\xff`; tables and JSON hold nothing else."""
    return os.fsencode(path).decode("utf-8", errors="backslashreplace")


def _seen(path: str, found: os.stat_result) -> Seen:
    return Seen(path, found.st_size, found.st_mtime_ns, (found.st_dev, found.st_ino) if found.st_nlink > 1 else None)


def _alone(root: Path, seen: os.stat_result) -> Found:
    found = Found(is_file=True)
    if stat.S_ISREG(seen.st_mode):
        found.files.append(_seen(root.name, seen))
    else:
        found.skip(unicode_path(root.name), 0, kind_of(seen.st_mode))
    return found


def _walked(root: Path, limits: Limits) -> Found:
    found = Found()
    top = os.path.realpath(root)
    folders = [("", 0)]
    while folders:
        folder, depth = folders.pop()
        try:
            with os.scandir(f"{top}/{folder}") as entries:
                names = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if not folder or error.errno in EXHAUSTED:
                raise _refusal(os.fspath(root), error) from error
            found.skip(unicode_path(folder), 0, _why(error))
            continue
        below: list[tuple[str, int]] = []
        for entry in names:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if found.is_full(path, limits):
                return found
            if not _look_at(entry, path, top, found):
                continue
            if depth + 1 > limits.depth:
                found.skip(unicode_path(path), 0, f"deeper than {limits.depth} folders")
            else:
                below.append((path, depth + 1))
        folders.extend(reversed(below))
    return found


def _look_at(entry: os.DirEntry[str], path: str, top: str, found: Found) -> bool:
    """Note one entry; true when it is a folder to walk into."""
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError as error:
        found.skip(unicode_path(path), 0, _why(error))
        return False
    if stat.S_ISDIR(seen.st_mode):
        return True
    if stat.S_ISLNK(seen.st_mode):
        found.skip(unicode_path(path), 0, _link_reason(entry.path, top))
    elif not stat.S_ISREG(seen.st_mode):
        found.skip(unicode_path(path), 0, kind_of(seen.st_mode))
    else:
        found.files.append(_seen(path, seen))
    return False


def _why(error: OSError) -> str:
    return f"{UNREADABLE}: {error.strerror or type(error).__name__}"


def _link_reason(path: str, top: str) -> str:
    try:
        target = os.path.realpath(path, strict=True)
    except OSError as error:
        return f"link that leads nowhere: {error.strerror}"
    return "link" if target == top or target.startswith(top.rstrip("/") + "/") else "link out of the run"
