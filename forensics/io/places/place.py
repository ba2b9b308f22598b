"""The interface of a place of a run: its contents, one file of it opened, and whether that file has changed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from forensics.io.disk import Disk
from forensics.io.limits import Limits
from forensics.model import FileCoverage, FileStatus, Issue


class Seen(NamedTuple):
    """What is kept of a file's `stat`, whose own value takes 600 bytes a file; `node` only where it has two names."""

    path: str
    size_bytes: int
    mtime_ns: int
    node: tuple[int, int] | None = None


class Found(Struct):
    """What a place holds: its regular files, what was passed over with its reason, and issues.

    `is_file` says that the place is one file, which is called by its name.
    """

    files: list[Seen] = field(default_factory=list[Seen])
    skipped: list[FileCoverage] = field(default_factory=list[FileCoverage])
    issues: list[Issue] = field(default_factory=list[Issue])
    is_file: bool = False

    def skip(self, path: str, size_bytes: int, reason: str) -> None:
        """Pass a file over; `path` is fit for tables."""
        self.skipped.append(FileCoverage(path, size_bytes, 0, size_bytes, FileStatus.SKIPPED, reason=reason))

    def is_full(self, path: str, limits: Limits) -> bool:
        """Whether no further file may be noted, which is an issue at `path`."""
        if len(self.files) + len(self.skipped) < limits.files:
            return False
        message = f"stopped after {limits.files} files; the rest of the run was not looked at"
        self.issues.append(Issue(path, "too-many-files", message))
        return True


class Place(Protocol):
    """A folder, one file, or what a bucket holds under a prefix; another process is given its name, never itself."""

    @property
    def name(self) -> str:
        """The user's name for it, without anything secret."""
        ...

    @property
    def identity(self) -> bytes:
        """Its identity among all places."""
        ...

    @property
    def folder(self) -> Path | None:
        """Its path where it is on this machine."""
        ...

    def looked_through(self, limits: Limits) -> Found:
        """List the files, in any order, following no link; `limits` bound their number and depth.

        Raises `UsageError` when there is no such place, or it cannot be listed.
        """
        ...

    def refused(self, path: str) -> str:
        """Why a file that was found cannot be read; nothing where it can, or where only opening it will tell."""
        ...

    def opened(self, path: str) -> AbstractContextManager[Disk]:
        """Open a file that was found; where the place is one file, that file.

        Raises `InputError` when it is gone, refused, no regular file, or when its path leads out of the place;
        `PlaceError` when the place as a whole gives nothing any more.
        """
        ...

    def seen(self, path: str) -> Seen | None:
        """The present state of a file; None when the system refuses it."""
        ...

    def tag(self, path: str) -> str:
        """What a service calls the present content of a file; nothing where none does, or the file is gone."""
        ...

    def holding(self, path: str) -> tuple[Place, str]:
        """The place that holds a file and its neighbours, and its path there."""
        ...

    def below(self, folder: str) -> Place:
        """One of its folders as a place of its own."""
        ...
