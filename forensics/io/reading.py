"""A file of the run, opened: its bytes as they are on disk, or as a bounded stream of text blocks.

Nothing here raises for what a file contains. Losses are values: `problems()` are the issues of the last pass over
`blocks()`, `account()` is its account of bytes on disk.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import BinaryIO

from msgspec import Struct

from forensics.errors import InputError, LimitExceeded, PlaceError
from forensics.io.blocks import Block, cut_blocks
from forensics.io.budget import Budget
from forensics.io.decompress import as_utf8, compression_of, expanded, gathered, plain
from forensics.io.disk import Disk, HeldBytes, Ledger, Lost, OpenFile, Piece, let_go
from forensics.io.limits import DEFAULT, Limits
from forensics.io.places.named import Where, place_of
from forensics.io.places.place import Place
from forensics.model import Issue, Source
from forensics.values import replace

__all__ = ["Block", "Opened", "ReadAccount", "open_source", "opened_bytes", "opened_stream"]


#: Memory of a large copy is given back in pieces of this size.
_LET_GO_BYTES = 16 << 20


class ReadAccount(Struct, frozen=True):
    """The use of the bytes on disk in one pass: `read_bytes + skipped_bytes` is the size of the file."""

    read_bytes: int
    skipped_bytes: int
    reason: str = ""


#: Opens the file whose name has the second ending where this one's has the first.
Beside = Callable[[str, str], "AbstractContextManager[Opened]"]


class Opened:
    """One source, open for reading; made by `open_source`, `opened_bytes` and `opened_stream`."""

    def __init__(self, source: Source, disk: Disk, limits: Limits, beside: Beside | None = None) -> None:
        """Take an open disk; `source.size_bytes` becomes what the file measured when it was opened."""
        self.source = replace(source, size_bytes=disk.size_bytes)
        self._disk = disk
        self._limits = limits
        self._ledger = Ledger(source.path)
        self._map: mmap.mmap | bytes | None = None
        self._passed_bytes = 0
        self.budget = Budget(disk.size_bytes, limits)
        self._beside = beside
        self._held = ExitStack()

    @property
    def size_bytes(self) -> int:
        """Bytes on disk when it was opened."""
        return self._disk.size_bytes

    @property
    def content_id(self) -> str:
        """What only this content has, where its place says so without reading it; else nothing."""
        return self._disk.content_id

    @property
    def compression(self) -> str:
        """`gzip`, `zstd` or nothing, by content and never by name."""
        return compression_of(self.head(4))

    def head(self, n: int) -> bytes:
        """The first `n` bytes on disk."""
        return self.span(0, n)

    def tail(self, n: int) -> bytes:
        """The last `n` bytes on disk."""
        return self.span(max(self.size_bytes - n, 0), n)

    def span(self, offset: int, n: int) -> bytes:
        """Up to `n` bytes on disk from `offset` on; raises `InputError` when the disk refuses."""
        try:
            return self._disk.pread(n, offset)
        except OSError as error:
            msg = f"the disk refused to read at {offset}: {error.strerror}"
            raise InputError(msg) from error

    def next_data(self, offset: int) -> int:
        """The first position on disk from `offset` on that is not in a hole; the size when there is none."""
        return self._disk.next_data(offset)

    def raw(self) -> mmap.mmap | bytes:
        """All bytes on disk as one copy of our own, valid while the source is open; `b""` for an empty file.

        It ends where the file has become shorter, cannot be read, or has a large hole; `lost` then says so. Raises
        `InputError` when there is no room for it.
        """
        if self._map is None:
            self._map = self._disk.copied()
        return self._map

    def passed(self, byte: int) -> None:
        """Say that everything before this byte of `raw` was read, so that its memory may go."""
        if self._map is not None and byte >= self._passed_bytes + _LET_GO_BYTES:
            let_go(self._map, self._passed_bytes, byte)
            self._passed_bytes = byte

    @property
    def lost(self) -> Lost | None:
        """From which byte on the file could not be read, whatever the way it was read in."""
        return self._disk.lost

    def text_head(self, n: int) -> bytes:
        """The first `n` bytes of the decoded stream: what `blocks` would give, whole lines or not."""
        if n <= 0:
            return b""
        limits = replace(self._limits, block_bytes=max(2 * n + 4, 4096), line_bytes=0)  # UTF-16 shrinks to a half
        return next((piece.data[:n] for piece in self._pieces(limits, Ledger(self.source.path)) if piece.data), b"")

    def blocks(self) -> Iterator[Block]:
        """The decoded stream in blocks of whole lines: gzip and zstd expanded, UTF-16 turned into UTF-8."""
        self._ledger = ledger = Ledger(self.source.path)
        yield from self._cut(self._pieces(self._limits, ledger), ledger, 1)

    def blocks_of(self, begin: int, end: int, first_line: int) -> Iterator[Block]:
        """The blocks of a part of a plain file, which begins where line `first_line` does; `account` is the part's."""
        self._ledger = ledger = Ledger(self.source.path, disk_bytes=begin, begin=begin, end=end)
        ledger.decoded_bytes = begin
        pieces = as_utf8(plain(self._disk, ledger, self._limits, begin, end), ledger)
        yield from self._cut(pieces, ledger, first_line)

    def _cut(self, pieces: Iterator[Piece], ledger: Ledger, first_line: int) -> Iterator[Block]:
        for block in cut_blocks(pieces, self._limits, ledger, first_line):
            self.budget.grow(block.offset + len(block.data), ledger.disk_bytes)
            yield block

    def chunks(self, size_bytes: int) -> Iterator[bytes]:
        """The decoded stream in pieces of about `size_bytes`, wherever its lines end: for files of few long lines."""
        self._ledger = ledger = Ledger(self.source.path)
        for piece in self._pieces(replace(self._limits, block_bytes=size_bytes), ledger):
            ledger.decoded_bytes = max(ledger.decoded_bytes, piece.offset + len(piece.data))
            self.budget.grow(ledger.decoded_bytes, ledger.disk_bytes)
            yield piece.data

    def beside(self, end: str, other: str) -> Opened | None:
        """The file of the same folder whose name ends in `other` where this one's ends in `end`; None for no such file.

        It is opened as every file of a run is, and closed with this one.
        """
        try:
            return None if self._beside is None else self._held.enter_context(self._beside(end, other))
        except InputError:
            return None

    def problems(self) -> tuple[Issue, ...]:
        """The losses of the last pass over `blocks` or `chunks`."""
        return tuple(self._ledger.issues)

    def account(self) -> ReadAccount:
        """The account of the last pass over the stream; bytes lost in a compressed file count by their share of it."""
        book = self._ledger
        used = book.disk_bytes - book.begin - book.gap_bytes
        decoded = book.decoded_bytes - book.begin - book.gap_bytes
        lost = -(-book.lost_bytes * used // decoded) if decoded else 0
        read = used - min(lost, used)
        skipped = (self.size_bytes if book.end is None else book.end) - book.begin - read
        reason = "; ".join(issue.message for issue in book.issues) or "not read to the end"
        return ReadAccount(read, skipped, reason if skipped else "")

    @property
    def decoded_bytes(self) -> int:
        """Bytes of the decoded stream that the last pass has given, at least 1."""
        return max(self._ledger.decoded_bytes, 1)

    def close(self) -> None:
        """Let go of the copy; a view that is still held keeps it alive."""
        if isinstance(self._map, mmap.mmap):
            with suppress(BufferError):
                self._map.close()
        self._map = None
        self._held.close()

    def _pieces(self, limits: Limits, ledger: Ledger) -> Iterator[Piece]:
        compression = self.compression
        if compression:
            pieces = gathered(expanded(self._disk, ledger, limits, compression), limits.block_bytes)
        else:
            pieces = plain(self._disk, ledger, limits)
        return as_utf8(pieces, ledger)


@contextmanager
def open_source(where: Where, source: Source, limits: Limits = DEFAULT) -> Generator[Opened, None, None]:
    """Open a discovered file of the place `where` (or the file that it is) and close it afterwards.

    Raises `InputError` when it is gone, unreadable, no regular file, or when a link on its path leads out of the run.
    """
    place = place_of(where)
    with place.opened(source.disk_path or source.path) as disk:
        opened = Opened(source, disk, limits, _beside(place, source, limits))
        try:
            yield opened
        finally:
            opened.close()


def _beside(place: Place, source: Source, limits: Limits) -> Beside:
    def opening(end: str, other: str) -> AbstractContextManager[Opened]:
        folder, name = place.holding(source.disk_path or source.path)
        if not name.endswith(end):
            raise InputError("its name has another end")
        path = name.removesuffix(end) + other
        return open_source(folder, Source(path, 0, disk_path=path), limits)

    return opening


def opened_bytes(name: str, data: bytes, limits: Limits = DEFAULT, others: Mapping[str, bytes] | None = None) -> Opened:
    """Give bytes in memory the same face as a file, with `others` beside it; every ingester can be run on them."""
    files = others or {}

    def opening(end: str, other: str) -> AbstractContextManager[Opened]:
        path = name.removesuffix(end) + other
        if not name.endswith(end) or path not in files:
            raise InputError("is not there")
        return nullcontext(opened_bytes(path, files[path], limits, {**files, name: data}))

    return Opened(Source(name, len(data)), HeldBytes(data), limits, opening)


@contextmanager
def opened_stream(name: str, stream: BinaryIO, limits: Limits = DEFAULT) -> Generator[Opened, None, None]:
    """Give a pipe the same face as a file, by way of an unnamed temporary file, so memory stays bounded.

    Raises `LimitExceeded` when the pipe gives more than `limits.expanded_bytes`; `PlaceError` when it cannot be read,
    or there is no temporary space for it.
    """
    with _refusing("a temporary file (TMPDIR)"):
        spool = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed below
    with spool as held:
        while data := _next(stream):
            with _refusing(f"the temporary folder {tempfile.gettempdir()}"):
                _write_all(held, data)
            if held.tell() > limits.expanded_bytes:
                raise LimitExceeded("bytes of a pipe", limit=limits.expanded_bytes, actual=held.tell())
        opened = Opened(Source(name, held.tell()), OpenFile(held.fileno(), held.tell()), limits)
        try:
            yield opened
        finally:
            opened.close()


def _write_all(held: BinaryIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[held.write(rest) :]


def _next(stream: BinaryIO) -> bytes:
    with _refusing("standard input"):
        return stream.read(1 << 20)


@contextmanager
def _refusing(place: str) -> Generator[None, None, None]:
    """Name the place that the machine refuses."""
    try:
        yield
    except OSError as error:
        raise PlaceError(place, error) from error
