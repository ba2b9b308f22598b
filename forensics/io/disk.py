"""Bytes by position, from an open file or from memory, and the account of what became of them."""

from __future__ import annotations

import errno
import mmap
import os
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from forensics.errors import InputError
from forensics.model import Issue


class Disk(Protocol):
    """Bytes that can be read by position; `size_bytes` was fixed when they were opened."""

    @property
    def size_bytes(self) -> int:
        """How many bytes there are."""
        ...

    def pread(self, count: int, offset: int) -> bytes:
        """Up to `count` bytes from `offset`; nothing at the end."""
        ...

    def next_data(self, offset: int) -> int:
        """The first position from `offset` on that is not in a hole of a sparse file; the size when there is none."""
        ...

    def map(self) -> mmap.mmap | bytes:
        """All bytes without a copy."""
        ...


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A regular file by its descriptor."""

    fd: int
    size_bytes: int

    def pread(self, count: int, offset: int) -> bytes:
        """Read without moving a file position; never past the size at opening, so a growing file stays one value."""
        return os.pread(self.fd, max(min(count, self.size_bytes - offset), 0), offset)

    def next_data(self, offset: int) -> int:
        """Ask the file system for the end of a hole."""
        if not hasattr(os, "SEEK_DATA"):
            return offset
        try:
            return min(os.lseek(self.fd, offset, os.SEEK_DATA), self.size_bytes)
        except OSError as error:
            if error.errno == errno.ENXIO and os.fstat(self.fd).st_size >= self.size_bytes:
                return self.size_bytes  # nothing but a hole follows
            return offset  # the file became shorter, or its file system does not know holes

    def map(self) -> mmap.mmap | bytes:
        """Map the file for reading; a file that shrinks while mapped can kill the process, so prefer `pread`."""
        if self.size_bytes == 0:
            return b""
        try:
            return mmap.mmap(self.fd, self.size_bytes, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            msg = f"cannot be mapped: {error}"
            raise InputError(msg) from error


@dataclass(frozen=True, slots=True)
class HeldBytes:
    """Bytes already in memory."""

    data: bytes

    @property
    def size_bytes(self) -> int:
        """How many bytes there are."""
        return len(self.data)

    def pread(self, count: int, offset: int) -> bytes:
        """Slice."""
        return self.data[offset : offset + count]

    def next_data(self, offset: int) -> int:
        """Memory has no holes."""
        return offset

    def map(self) -> bytes:
        """The bytes themselves."""
        return self.data


class Piece(NamedTuple):
    """Bytes of a stream and where in it they stand; a jump of the offset is a gap."""

    offset: int
    data: bytes


@dataclass(slots=True)
class Ledger:
    """What one pass over a stream has used, lost and met: the account and the issues of a source.

    `disk_bytes`: position on disk up to which bytes were used; `gap_bytes`: of these, bytes of holes passed over;
    `decoded_bytes`: what they became; `lost_bytes`: of these, bytes cut out of over-long lines.
    """

    source: str
    disk_bytes: int = 0
    gap_bytes: int = 0
    decoded_bytes: int = 0
    lost_bytes: int = 0
    issues: list[Issue] = field(default_factory=list[Issue])

    def problem(self, code: str, message: str, *, byte: int, line: int | None = None, count: int = 1) -> None:
        """State a loss; a second one of the same code is added to the first as a count."""
        for at, issue in enumerate(self.issues):
            if issue.code == code:
                self.issues[at] = Issue(issue.source, code, issue.message, issue.byte, issue.line, issue.count + count)
                return
        self.issues.append(Issue(self.source, code, message, byte, line, count))
