"""Streams of bytes from plain, gzip and zstd files, and of UTF-8 from them: bounded, kept up to where damage begins."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol

from msgspec import Struct, field

from forensics.io.disk import Disk, Ledger, Piece
from forensics.io.limits import Limits

GZIP = b"\x1f\x8b\x08"
ZSTD = b"\x28\xb5\x2f\xfd"
_OUTPUT_BYTES = 1 << 20
#: Below this size a high ratio is ordinary (a short log of one repeated line).
_RATIO_FROM_BYTES = 64 << 20


def compression_of(head: bytes) -> str:
    """`gzip`, `zstd` or nothing, by the first bytes on disk."""
    if head.startswith(GZIP):
        return "gzip"
    return "zstd" if head.startswith(ZSTD) else ""


class _Damaged(Exception):  # noqa: N818 - internal: carries the bytes before the damage
    def __init__(self, why: str, out: bytes, used_bytes: int) -> None:
        super().__init__(why)
        self.out = out
        self.used_bytes = used_bytes


class _Member(Protocol):
    """One gzip member or zstd frame, fed step by step."""

    def step(self, data: bytes) -> tuple[bytes, bytes, bool]:
        """Take compressed bytes, return the decoded and the unused bytes, and whether the member is over."""
        ...


class _Gzip(Struct):
    inflate: Any = field(default_factory=lambda: zlib.decompressobj(wbits=31))

    def step(self, data: bytes) -> tuple[bytes, bytes, bool]:
        before = self.inflate.copy()
        try:
            out = self.inflate.decompress(data, _OUTPUT_BYTES)
        except zlib.error as error:
            raise _salvage(before, data, str(error)) from error
        if self.inflate.eof:
            return out, self.inflate.unused_data, True
        return out, self.inflate.unconsumed_tail, False


def _salvage(before: Any, data: bytes, why: str) -> _Damaged:  # noqa: ANN401 - the class has no public name
    """Feed single bytes to a copy made before the damage, to keep all that comes out before it."""
    kept: list[bytes] = []
    for at in range(len(data)):
        try:
            kept.append(before.decompress(data[at : at + 1]))
        except zlib.error:
            return _Damaged(why, b"".join(kept), at)
    return _Damaged(why, b"".join(kept), len(data))


class _Zstd:
    def __init__(self) -> None:
        import zstandard  # noqa: PLC0415 - few runs hold zstd files

        self._error = zstandard.ZstdError
        self._frame = zstandard.ZstdDecompressor().decompressobj()

    def step(self, data: bytes) -> tuple[bytes, bytes, bool]:
        try:
            out = self._frame.decompress(data)
        except self._error as error:
            raise _Damaged(str(error), b"", 0) from error
        return out, self._frame.unused_data if self._frame.eof else b"", self._frame.eof


class _Format(Struct, frozen=True):
    """How one format is read; `step_bytes` is how much of it is fed at once.

    zstd has no bound on what one call returns, and 4 bytes can stand for 128 KiB: 2 KiB in is at most 64 MiB out.
    """

    name: str
    magic: bytes
    member: Callable[[], _Member]
    step_bytes: int


_FORMATS = {"gzip": _Format("gzip", GZIP, _Gzip, 32 << 10), "zstd": _Format("zstd", ZSTD, _Zstd, 2 << 10)}


#: Where the last line end of a block is looked for.
_TAIL_BYTES = 64 << 10


def _read(disk: Disk, ledger: Ledger, count: int, offset: int) -> bytes:
    """Read from disk; a failing disk ends the stream with an issue instead of an exception."""
    if offset >= disk.size_bytes:
        return b""
    try:
        data = disk.pread(count, offset)
    except OSError as error:
        ledger.problem("read-error", f"the disk refused to read on: {error.strerror}", byte=offset)
        return b""
    if not data:
        ledger.problem("shrank", "the file became shorter while it was read", byte=offset)
    return data


def _to_a_line_end(disk: Disk, at: int, block_bytes: int, stop: int) -> int:
    """How much to read: up to the last line end of the block where it is near, which saves joining halves of lines."""
    begin = at + block_bytes - _TAIL_BYTES
    if begin <= at or at + block_bytes >= stop:
        return min(block_bytes, stop - at)
    try:
        line_end = disk.pread(_TAIL_BYTES, begin).rfind(b"\n") + 1
    except OSError:
        return block_bytes
    return begin - at + line_end if line_end else block_bytes


def plain(disk: Disk, ledger: Ledger, limits: Limits, begin: int = 0, end: int | None = None) -> Iterator[Piece]:
    """Read a file, or its bytes from `begin` to `end`, as it is, in pieces of `block_bytes`.

    Holes of that size or more are passed over.
    """
    at, stop = begin, disk.size_bytes if end is None else min(end, disk.size_bytes)
    while at < stop:
        data_at = min(disk.next_data(at), stop)
        if data_at - at >= limits.block_bytes:
            ledger.problem("hole", "the file has a hole: bytes that were never written", byte=at)
            ledger.gap_bytes += data_at - at
            ledger.disk_bytes = at = data_at
            continue
        data = _read(disk, ledger, _to_a_line_end(disk, at, limits.block_bytes, stop), at)
        if not data:
            return
        ledger.disk_bytes = at + len(data)
        yield Piece(at, data)
        at += len(data)


class _Input(Struct):
    """Compressed bytes that are not used yet; `ledger.disk_bytes` is the position of the first of them."""

    disk: Disk
    ledger: Ledger
    step_bytes: int
    data: bytes = b""

    def fill(self) -> bool:
        if not self.data:
            self.data = _read(self.disk, self.ledger, self.step_bytes, self.ledger.disk_bytes)
        return bool(self.data)

    def use(self, rest: bytes) -> None:
        self.ledger.disk_bytes += len(self.data) - len(rest)
        self.data = rest

    def at_member(self, magic: bytes) -> bool:
        """Skip the padding of zeros that may be between members; true at the begin of another one."""
        while self.fill():
            if rest := self.data.lstrip(b"\0"):
                self.use(rest)
                break
            self.use(b"")
        if not self.data:
            return False
        if len(self.data) < len(magic):
            self.data += _read(self.disk, self.ledger, len(magic), self.ledger.disk_bytes + len(self.data))
        if magic.startswith(self.data[: len(magic)]):
            return True
        self.ledger.problem("trailing", "bytes after the compressed data", byte=self.ledger.disk_bytes)
        return False


def _member(source: _Input, kind: _Format) -> Iterator[bytes]:
    """The content of one member; damage and a missing end are problems of the ledger."""
    member, ended = kind.member(), False
    while not ended and source.fill():
        try:
            out, rest, ended = member.step(source.data)
        except _Damaged as damage:
            source.use(source.data[damage.used_bytes :])
            source.ledger.problem(kind.name, f"damaged: {damage}", byte=source.ledger.disk_bytes)
            yield damage.out
            return
        source.use(rest)
        yield out
    if not ended and not source.ledger.issues:
        message = "the compressed data stop before their end mark"
        source.ledger.problem(f"{kind.name}-cut", message, byte=source.ledger.disk_bytes)


def expanded(disk: Disk, ledger: Ledger, limits: Limits, compression: str) -> Iterator[Piece]:
    """Decompress all members of a gzip or zstd file, up to its end, its damage, or the bounds of `limits`."""
    kind = _FORMATS[compression]
    source = _Input(disk, ledger, kind.step_bytes)
    size_bytes = 0
    while not ledger.issues and source.at_member(kind.magic):
        for out in _member(source, kind):
            size_bytes += len(out)
            ratio_over = size_bytes > max(_RATIO_FROM_BYTES, ledger.disk_bytes * limits.expanded_ratio)
            if ratio_over or size_bytes > limits.expanded_bytes:
                what = f"{limits.expanded_ratio} times the file" if ratio_over else f"{limits.expanded_bytes} bytes"
                ledger.problem("expansion", f"grows to more than {what}; the rest was not read", byte=ledger.disk_bytes)
                return
            if out:
                yield Piece(size_bytes - len(out), out)


_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def gathered(pieces: Iterable[Piece], block_bytes: int) -> Iterator[Piece]:
    """Join neighbouring pieces until each has `block_bytes` or more; a gap stays a gap."""
    parts: list[bytes] = []
    begin, size_bytes = 0, 0
    for offset, data in pieces:
        if parts and (offset != begin + size_bytes or size_bytes >= block_bytes):
            yield Piece(begin, b"".join(parts))
            parts, size_bytes = [], 0
        if not parts:
            begin = offset
        parts.append(data)
        size_bytes += len(data)
    if parts:
        yield Piece(begin, b"".join(parts))


def _utf8(pieces: Iterable[Piece], codec: str, ledger: Ledger) -> Iterator[Piece]:
    decoder = codecs.getincrementaldecoder(codec)("replace")
    at = 0
    for data in chain((piece.data for piece in pieces), (b"",)):
        text = decoder.decode(data, not data)
        if bad := text.count("\ufffd"):
            ledger.problem("utf-16", "units that are not UTF-16 were replaced", byte=ledger.disk_bytes, count=bad)
        if out := text.encode():
            yield Piece(at, out)
            at += len(out)


def as_utf8(pieces: Iterable[Piece], ledger: Ledger) -> Iterator[Piece]:
    """Remove a byte-order mark and turn UTF-16 into UTF-8; bytes of any other encoding pass as they are.

    Offsets stay those of the stream that came in, but for UTF-16, where they are those of the UTF-8 that goes out.
    """
    stream = iter(pieces)
    first = next(stream, None)
    if first is None:
        return
    head = first.data if first.offset == 0 else b""
    if (encoding := _UTF16.get(head[:2])) is not None:
        yield from _utf8(chain((Piece(0, first.data[2:]),), stream), encoding, ledger)
        return
    bom = 3 if head.startswith(codecs.BOM_UTF8) else 0
    yield Piece(first.offset + bom, first.data[bom:] if bom else first.data)
    yield from stream
