"""Bytes by position, from an open file or from memory, and the account of their use."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from forensics.errors import InputError
from forensics.model import Issue

#: A copy up to this size is held in memory, a larger one in a temporary file; a run above it is spilled to disk, too.
_HELD_BYTES = 256 << 20
#: A hole of this size ends a copy: preallocated space that no writer reached, and it would cost its size to look at.
_HOLE_BYTES = 8 << 20
_COPY_BYTES = 16 << 20


class Lost(Struct, frozen=True):
    """The first byte of a file that could not be read, and why: `shrank`, `read-error` or `hole`."""

    code: str
    byte: int
    why: str


class Disk(Protocol):
    """Bytes that can be read by position; `size_bytes` was fixed when they were opened."""

    @property
    def size_bytes(self) -> int:
        """How many bytes there are."""
        ...

    @property
    def lost(self) -> Lost | None:
        """The first loss so far; None when every requested byte was there."""
        ...

    @property
    def content_id(self) -> str:
        """What only these bytes have, where their place says so without reading them; else nothing."""
        ...

    def pread(self, count: int, offset: int) -> bytes:
        """Up to `count` bytes from `offset`; fewer only at the end, or where the file has become shorter."""
        ...

    def next_data(self, offset: int) -> int:
        """The first position from `offset` on that is not in a hole of a sparse file; the size when there is none."""
        ...

    def copied(self) -> mmap.mmap | bytes:
        """All bytes that can be read, in memory that no change of the file can reach."""
        ...


class OpenFile(Struct):
    """A regular file by its descriptor; whatever happens to it meanwhile, what it gives is bytes or a stated loss.

    It is never mapped: touching a mapped file that somebody has truncated kills the process.
    """

    fd: int
    size_bytes: int
    lost: Lost | None = None

    @property
    def content_id(self) -> str:
        """A file system says nothing of it."""
        return ""

    def pread(self, count: int, offset: int) -> bytes:
        """Read without moving a file position; never past the size at opening, so a growing file stays one value."""
        wanted = max(min(count, self.size_bytes - offset), 0)
        try:
            data = os.pread(self.fd, wanted, offset)
            while 0 < len(data) < wanted and (more := os.pread(self.fd, wanted - len(data), offset + len(data))):
                data += more
        except OSError as error:
            self._lose("read-error", offset, f"the disk refused to read on: {error.strerror}")
            raise
        if len(data) < wanted:
            self._lose("shrank", offset + len(data), "the file became shorter while it was read")
        return data

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

    def copied(self) -> mmap.mmap | bytes:
        """Copy the file, up to its first large hole or to where it cannot be read; the rest is `lost`.

        Raises `InputError` when there is no memory, or no temporary space, for it.
        """
        end = self._data_end()
        held = room(end)
        have = self._fill(held, end)
        if not have:
            return b""
        if have < end and isinstance(held, mmap.mmap):
            held.resize(have)
        return held

    def _fill(self, held: mmap.mmap | bytes, end: int) -> int:
        """How many bytes could be copied."""
        at = 0
        with memoryview(held) as view:
            while at < end:
                try:
                    count = os.preadv(self.fd, [view[at : min(at + _COPY_BYTES, end)]], at)
                except OSError as error:
                    self._lose("read-error", at, f"the disk refused to read on: {error.strerror}")
                    return at
                if not count:
                    self._lose("shrank", at, "the file became shorter while it was read")
                    return at
                let_go(held, at, at + count)
                at += count
        return at

    def _data_end(self) -> int:
        """Where the first large hole begins, or the size."""
        for begin, end in self._holes():
            if end - begin >= _HOLE_BYTES:
                self._lose("hole", begin, f"{end - begin:,} bytes from here on were never written")
                return begin
        return self.size_bytes

    def _holes(self) -> Iterator[tuple[int, int]]:
        at = 0
        while at < self.size_bytes and hasattr(os, "SEEK_HOLE"):
            data = self.next_data(at)
            if data > at:
                yield at, data
            try:
                at = os.lseek(self.fd, data, os.SEEK_HOLE)
            except OSError:  # it became shorter, or its file system does not know holes
                return

    def _lose(self, code: str, byte: int, why: str) -> None:
        if self.lost is None or byte < self.lost.byte:
            self.lost = Lost(code, byte, why)


def room(size_bytes: int) -> mmap.mmap | bytes:
    """Memory of this size that is nobody else's: anonymous, or a file without a name where it is large.

    Raises `InputError` when there is no memory, or no temporary space, for it.
    """
    if size_bytes <= 0:
        return b""
    try:
        if size_bytes <= _HELD_BYTES:
            # private, so that a reader that gives pages back frees them; it must not look at them again
            return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with tempfile.TemporaryFile() as own:
            with suppress(AttributeError):  # a full disk must be told now: a map over no blocks would kill us later
                os.posix_fallocate(own.fileno(), 0, size_bytes)
            own.truncate(size_bytes)
            return mmap.mmap(own.fileno(), size_bytes)
    except (OSError, ValueError, MemoryError, OverflowError) as error:
        msg = f"{size_bytes:,} bytes cannot be held: {getattr(error, 'strerror', None) or error or 'no memory'}"
        raise InputError(msg) from error


def let_go(held: mmap.mmap | bytes, begin: int, end: int) -> None:
    """Free the memory of a part of a copy that has a file behind it: who looks there again gets it from the file."""
    if isinstance(held, mmap.mmap) and len(held) > _HELD_BYTES:
        first, last = (at // mmap.PAGESIZE * mmap.PAGESIZE for at in (begin, end))
        if last > first:
            held.madvise(mmap.MADV_DONTNEED, first, last - first)


class HeldBytes(Struct, frozen=True):
    """Bytes already in memory."""

    data: bytes
    lost: Lost | None = None

    @property
    def size_bytes(self) -> int:
        """How many bytes there are."""
        return len(self.data)

    @property
    def content_id(self) -> str:
        """Nobody says."""
        return ""

    def pread(self, count: int, offset: int) -> bytes:
        """Slice."""
        return self.data[offset : offset + count]

    def next_data(self, offset: int) -> int:
        """Memory has no holes."""
        return offset

    def copied(self) -> bytes:
        """The bytes themselves."""
        return self.data


class Piece(NamedTuple):
    """Bytes of a stream and their place in it; a jump of the offset is a gap."""

    offset: int
    data: bytes


class Ledger(Struct):
    """What one pass over a stream has used, lost and met: the account and the issues of a source.

    `disk_bytes`: position on disk up to which bytes were used; `gap_bytes`: of these, bytes of holes passed over;
    `decoded_bytes`: what they became; `lost_bytes`: of these, bytes cut out of over-long lines. `begin` and `end` are
    the bounds of the part that the stream reads.
    """

    source: str
    disk_bytes: int = 0
    begin: int = 0
    end: int | None = None
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
