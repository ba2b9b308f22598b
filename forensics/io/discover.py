"""The walk over a run: which files there are, which of them can be read, and why the others cannot."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from forensics.errors import EXHAUSTED, InputError, PlaceError, UsageError
from forensics.io.limits import DEFAULT, Limits
from forensics.io.local_ranks import with_global_ranks
from forensics.io.opening import kind_of, open_regular
from forensics.io.path_rank import attempt_of, rank_of
from forensics.model import UNREADABLE, FileCoverage, FileStatus, Issue, Source

#: First line of a pointer file, from the git-lfs specification, which also bounds it to 1,024 bytes.
_LFS = b"version https://git-lfs.github.com/spec/"
_LFS_BYTES = range(len(_LFS), 1025)


@dataclass(frozen=True, slots=True)
class Discovery:
    """What lies in a run: sources in the order of their paths, what was passed over with its reason, and issues.

    `empty` are files without a byte, which are `skipped`, too: that a process printed nothing is evidence.
    """

    root: Path
    sources: tuple[Source, ...] = ()
    empty: tuple[Source, ...] = ()
    skipped: tuple[FileCoverage, ...] = ()
    issues: tuple[Issue, ...] = ()


class _Seen(NamedTuple):
    """What is kept of a file's `stat`, whose own value takes 600 bytes a file; `node` only where it has two names."""

    path: str
    size_bytes: int
    mtime_ns: int
    node: tuple[int, int] | None


def _seen(path: str, found: os.stat_result) -> _Seen:
    return _Seen(path, found.st_size, found.st_mtime_ns, (found.st_dev, found.st_ino) if found.st_nlink > 1 else None)


@dataclass(slots=True)
class _Found:
    files: list[_Seen] = field(default_factory=list[_Seen])
    skipped: list[FileCoverage] = field(default_factory=list[FileCoverage])
    issues: list[Issue] = field(default_factory=list[Issue])

    def skip(self, path: str, size_bytes: int, reason: str) -> None:
        self.skipped.append(FileCoverage(_unicode(path), size_bytes, 0, size_bytes, FileStatus.SKIPPED, reason=reason))


def _why(error: OSError) -> str:
    return f"{UNREADABLE}: {error.strerror or type(error).__name__}"


def _link_reason(path: str, top: str) -> str:
    try:
        target = os.path.realpath(path, strict=True)
    except OSError as error:
        return f"link that leads nowhere: {error.strerror}"
    return "link" if target == top or target.startswith(top.rstrip("/") + "/") else "link out of the run"


def _look_at(entry: os.DirEntry[str], path: str, top: str, found: _Found) -> bool:
    """Note one entry; true when it is a folder to walk into."""
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError as error:
        found.skip(path, 0, _why(error))
        return False
    if stat.S_ISDIR(seen.st_mode):
        return True
    if stat.S_ISLNK(seen.st_mode):
        found.skip(path, 0, _link_reason(entry.path, top))
    elif not stat.S_ISREG(seen.st_mode):
        found.skip(path, 0, kind_of(seen.st_mode))
    else:
        found.files.append(_seen(path, seen))
    return False


def _walk(root: Path, limits: Limits) -> _Found:
    found = _Found()
    top = os.path.realpath(root)
    folders = [("", 0)]
    while folders:
        folder, depth = folders.pop()
        try:
            with os.scandir(f"{top}/{folder}") as entries:
                names = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if not folder or error.errno in EXHAUSTED:
                raise PlaceError(os.fspath(root), error) from error
            found.skip(folder, 0, _why(error))
            continue
        below: list[tuple[str, int]] = []
        for entry in names:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if len(found.files) + len(found.skipped) >= limits.files:
                message = f"stopped after {limits.files} files; the rest of the run was not looked at"
                found.issues.append(Issue(path, "too-many-files", message))
                return found
            if not _look_at(entry, path, top, found):
                continue
            if depth + 1 > limits.depth:
                found.skip(path, 0, f"deeper than {limits.depth} folders")
            else:
                below.append((path, depth + 1))
        folders.extend(reversed(below))
    return found


def _is_pointer(path: str, size_bytes: int, *, follow: bool) -> bool:
    if size_bytes not in _LFS_BYTES:
        return False
    fd, _ = open_regular(path, follow=follow)
    try:
        return os.pread(fd, len(_LFS), 0) == _LFS
    finally:
        os.close(fd)


def _reason(path: str, size_bytes: int, *, follow: bool = False) -> str:
    """Why a regular file is passed over, or nothing."""
    if size_bytes == 0:
        return "empty"
    if not os.access(path, os.R_OK):
        return f"{UNREADABLE}: Permission denied"
    try:
        return "git-lfs pointer" if _is_pointer(path, size_bytes, follow=follow) else ""
    except InputError as error:
        return f"{UNREADABLE}: {error.message}"
    except OSError as error:
        return _why(error)


def _unicode(path: str) -> str:
    r"""The path with bytes that are no UTF-8 written as `\xff`; tables and JSON hold nothing else."""
    return os.fsencode(path).decode("utf-8", errors="backslashreplace")


def _source(seen: _Seen) -> Source:
    path = seen.path
    name = _unicode(path)
    disk_path = path if path != name else None
    return Source(name, seen.size_bytes, seen.mtime_ns, rank_of(path), attempt_of(path), disk_path)


def _once(files: Iterable[_Seen], found: _Found) -> Iterator[_Seen]:
    """Each file once: a second name of the same file would count its records twice."""
    seen_as: dict[tuple[int, int], str] = {}
    for seen in files:
        if seen.node is not None and seen_as.setdefault(seen.node, seen.path) != seen.path:
            found.skip(seen.path, seen.size_bytes, "link")
        else:
            yield seen


def _discover_file(root: Path, seen: os.stat_result) -> Discovery:
    found = _Found()
    if not stat.S_ISREG(seen.st_mode):
        found.skip(root.name, 0, kind_of(seen.st_mode))
    elif reason := _reason(os.fspath(root), seen.st_size, follow=True):
        found.skip(root.name, seen.st_size, reason)
    else:
        return Discovery(root, (_source(_seen(root.name, seen)),))
    return Discovery(root, skipped=tuple(found.skipped))


def discover(root: Path, limits: Limits = DEFAULT) -> Discovery:
    """Find the files of a run without following links or opening anything but regular files.

    `root` is a folder, or one file, which then is the only source and is called by its name. Links, pipes, sockets,
    devices, empty files, git-lfs pointers and what cannot be read are `skipped` rows with a reason; a link inside the
    run is skipped because its target is read where it stands.

    Raises:
        UsageError: when `root` does not exist or cannot be looked at.
        PlaceError: when its entries cannot be listed.
    """
    try:
        seen = root.stat()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        msg = f"{os.fspath(root)!r}: {why}"
        raise UsageError(msg, help="forensics triage --help") from error
    if not stat.S_ISDIR(seen.st_mode):
        return _discover_file(root, seen)
    found = _walk(root, limits)
    top = os.path.realpath(root)
    sources: list[Source] = []
    found.files.sort(key=lambda seen: seen.path)
    for seen_file in _once(found.files, found):
        if reason := _reason(f"{top}/{seen_file.path}", seen_file.size_bytes):
            found.skip(seen_file.path, seen_file.size_bytes, reason)
        if not reason or not seen_file.size_bytes:
            sources.append(_source(seen_file))
    skipped = sorted(found.skipped, key=lambda row: row.source)
    named = with_global_ranks(top, sources)
    full, empty = (tuple(one for one in named if bool(one.size_bytes) is has) for has in (True, False))
    return Discovery(root, full, empty, tuple(skipped), tuple(found.issues))
