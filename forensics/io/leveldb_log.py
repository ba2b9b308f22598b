"""Records of a LevelDB log with zlib checksums, as W&B writes its transaction logs; damage is passed over and told.

A file has a header of 7 bytes, then blocks of 32,768 bytes. Chunks are: checksum (4 bytes), length (2), kind (1), data.
The checksum is the plain CRC-32 of the kind and the data. Blocks count from the start of the file; one generation of
writers counted them from the end of the header, so the alignment that recovers more is taken.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from forensics.io.limits import DEFAULT, Limits

BLOCK_BYTES = 32_768
HEADER_BYTES = 7
_CHUNK_BYTES = 7
_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4

DamageCode = Literal["truncated", "zeroed", "bad-chunk", "unfinished", "record-too-long"]


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `spans` are (offset in the payload, offset in the file) of its parts, in order."""

    index: int
    byte: int
    payload: bytes
    spans: tuple[tuple[int, int], ...]

    def file_byte(self, at: int) -> int:
        """Where byte `at` of the payload stands in the file."""
        start, place = next((span for span in reversed(self.spans) if span[0] <= at), self.spans[0])
        return place + at - start


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of the file that gave no record."""

    code: DamageCode
    byte: int
    size_bytes: int


def frame(payloads: list[bytes], header: bytes, *, base: int = 0) -> bytes:
    """Write records as a log: for fixtures and tests; `base` is where the first block begins."""
    out = bytearray(header)
    for payload in payloads:
        rest, begun = payload, False
        while True:
            left = BLOCK_BYTES - (len(out) - base) % BLOCK_BYTES
            if left < _CHUNK_BYTES:
                out += bytes(left)
                left = BLOCK_BYTES
            part, rest = rest[: left - _CHUNK_BYTES], rest[left - _CHUNK_BYTES :]
            kind = (_MIDDLE if rest else _LAST) if begun else (_FIRST if rest else _FULL)
            out += _CHUNK.pack(zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            begun = True
            if not rest:
                break
    return bytes(out)


def read(data: mmap.mmap | bytes, limits: Limits = DEFAULT) -> Iterator[Record | Damage]:
    """Every sound record in order, and every stretch that gives none; all sizes in bytes of the file.

    `truncated` is the tail that a killed writer leaves; `unfinished` are the parts of a record whose end is missing.
    """
    yield from _Reader(data, _base(data), limits).run()


def _base(data: mmap.mmap | bytes) -> int:
    """Where the first block begins: 0, or 7 for the writers that forgot to count the header."""
    lost = _lost(data, 0)
    return HEADER_BYTES if lost and _lost(data, HEADER_BYTES) < lost else 0


def _lost(data: mmap.mmap | bytes, base: int) -> int:
    return sum(item.size_bytes for item in _Reader(data, base, DEFAULT).run() if isinstance(item, Damage))


class _Reader:
    """One pass over a log with one alignment."""

    __slots__ = ("_base", "_data", "_held", "_index", "_limits", "_parts")

    def __init__(self, data: mmap.mmap | bytes, base: int, limits: Limits) -> None:
        self._data = data
        self._base = base
        self._limits = limits
        self._parts: list[tuple[int, bytes]] = []
        self._held = 0
        self._index = 0

    def run(self) -> Iterator[Record | Damage]:
        data, size = self._data, len(self._data)
        at = min(HEADER_BYTES, size)
        while at < size:
            end = self._block_end(at)
            if end - at < _CHUNK_BYTES:
                at = min(end, size)
                continue
            if size - at < _CHUNK_BYTES:
                yield from self._drop("unfinished")
                yield Damage("truncated", at, size - at)
                return
            crc, length, kind = _CHUNK.unpack(data[at : at + _CHUNK_BYTES])
            stop = at + _CHUNK_BYTES + length
            if size < stop <= end and _FULL <= kind <= _LAST:
                yield from self._drop("unfinished")
                yield Damage("truncated", at, size - at)
                return
            body = data[at + 6 : stop] if stop <= min(end, size) else b""
            if _FULL <= kind <= _LAST and body and zlib.crc32(body) == crc:
                yield from self._chunk(kind, at, body[1:])
                at = stop
                continue
            yield from self._drop("unfinished")
            code, resume = self._gap(at, stop, end)
            yield Damage(code, at, resume - at)
            at = resume
        yield from self._drop("unfinished")

    def _block_end(self, at: int) -> int:
        return self._base + ((at - self._base) // BLOCK_BYTES + 1) * BLOCK_BYTES

    def _gap(self, at: int, stop: int, end: int) -> tuple[DamageCode, int]:
        """What is wrong at a chunk, and where reading goes on: behind it if a sound chunk follows, else a new block."""
        size = len(self._data)
        until = min(end, size)
        if not any(self._data[at : at + _CHUNK_BYTES]):
            return "zeroed", until
        if stop < until and self._sound(stop, until):
            return "bad-chunk", stop
        return "bad-chunk", until

    def _sound(self, at: int, until: int) -> bool:
        if until - at < _CHUNK_BYTES:
            return False
        crc, length, kind = _CHUNK.unpack(self._data[at : at + _CHUNK_BYTES])
        stop = at + _CHUNK_BYTES + length
        return _FULL <= kind <= _LAST and stop <= until and zlib.crc32(self._data[at + 6 : stop]) == crc

    def _chunk(self, kind: int, at: int, body: bytes) -> Iterator[Record | Damage]:
        if kind in {_FULL, _FIRST}:
            yield from self._drop("unfinished")
        elif not self._parts:
            yield Damage("unfinished", at, _CHUNK_BYTES + len(body))
            return
        self._parts.append((at, body))
        self._held += len(body)
        if self._held > self._limits.record_bytes:
            yield from self._drop("record-too-long")
        elif kind in {_FULL, _LAST}:
            yield self._record()

    def _record(self) -> Record:
        spans: list[tuple[int, int]] = []
        reached = 0
        for at, body in self._parts:
            spans.append((reached, at + _CHUNK_BYTES))
            reached += len(body)
        byte, payload = self._parts[0][0], b"".join(body for _, body in self._parts)
        self._parts, self._held, self._index = [], 0, self._index + 1
        return Record(self._index - 1, byte, payload, tuple(spans))

    def _drop(self, code: DamageCode) -> Iterator[Damage]:
        if self._parts:
            size = sum(_CHUNK_BYTES + len(body) for _, body in self._parts)
            yield Damage(code, self._parts[0][0], size)
            self._parts, self._held = [], 0
