"""Records of a LevelDB log with zlib checksums, as W&B writes its transaction logs; damage is passed over and told.

A file has a header of 7 bytes, then blocks of 32,768 bytes. Chunks are: checksum (4 bytes), length (2), kind (1), data.
The checksum is the plain CRC-32 of the kind and the data. Blocks count from the start of the file; one generation of
writers counted them from the end of the header, so at the first damage the alignment that recovers more is taken.
"""

from __future__ import annotations

import mmap
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Literal, NamedTuple

from forensics.io.limits import DEFAULT, Limits

BLOCK_BYTES = 32_768
HEADER_BYTES = 7
_CHUNK_BYTES = 7
_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
#: The two alignments are compared on this many blocks behind a damage, and at this many damages at most.
_PROBE_BLOCKS, _PROBES = 64, 8
#: Bytes of one log that may be checksummed in search of the next sound chunk of a damaged block.
_SEARCH_BYTES = 256 << 20
_KIND = re.compile(rb"[\x01-\x04]")

DamageCode = Literal["truncated", "zeroed", "bad-chunk", "unfinished", "record-too-long"]


class Record(NamedTuple):
    """One record; `spans` are (offset in the payload, offset in the file) of its parts, in order."""

    number: int
    byte: int
    payload: bytes
    spans: tuple[tuple[int, int], ...]

    def file_byte(self, at: int) -> int:
        """Where byte `at` of the payload stands in the file."""
        start, place = next((span for span in reversed(self.spans) if span[0] <= at), self.spans[0])
        return place + at - start


class Damage(NamedTuple):
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


def batches(data: mmap.mmap | bytes, limits: Limits = DEFAULT) -> Iterator[list[Record | Damage]]:
    """Every sound record in order, and every stretch that gives none, block by block; all sizes in bytes of the file.

    `truncated` is the tail that a killed writer leaves; `unfinished` are the parts of a record whose end is missing.
    """
    with memoryview(data) as view:
        yield from _Reader(view, limits).run()


class _Reader:
    """One pass over a log; the alignment is settled at the first damage."""

    __slots__ = ("_base", "_end", "_held", "_index", "_limits", "_parts", "_probes", "_search_left", "_sure", "_view")

    def __init__(self, view: memoryview, limits: Limits) -> None:
        self._view = view
        self._limits = limits
        self._base = 0
        self._end = len(view)
        self._sure = min(HEADER_BYTES, self._end)
        self._probes = _PROBES
        self._search_left = _SEARCH_BYTES
        self._parts: list[tuple[int, bytes]] = []
        self._held = 0
        self._index = 0

    def run(self) -> Iterator[list[Record | Damage]]:
        """Read all."""
        while self._sure < self._end:
            yield from self._sound()
            if self._sure >= self._end or self._realigned():
                continue
            yield [*self._drop("unfinished"), self._damage(self._sure)]
        yield list(self._drop("unfinished"))

    def _sound(self) -> Iterator[list[Record | Damage]]:
        """Records up to the next damage, which then stands at `_sure`, or behind the padding there."""
        view, size, base, longest = self._view, self._end, self._base, self._limits.record_bytes
        unpack, crc32, at = _CHUNK.unpack_from, zlib.crc32, self._sure
        while at < size:
            end = _block_end(base, at)
            until = min(end, size)
            found: list[Record | Damage] = []
            while at <= until - _CHUNK_BYTES:
                crc, length, kind = unpack(view, at)
                stop = at + _CHUNK_BYTES + length
                if not _FULL <= kind <= _LAST or stop > until or crc32(view[at + 6 : stop]) != crc:
                    yield found
                    return
                body = bytes(view[at + _CHUNK_BYTES : stop])
                if kind == _FULL and not self._parts and length <= longest:
                    found.append(Record(self._index, at, body, ((0, at + _CHUNK_BYTES),)))
                    self._index += 1
                else:
                    found += self._chunk(kind, at, body)
                at = self._sure = stop
            yield found
            if end > size:
                return
            at = end
        self._sure = size

    def _realigned(self) -> bool:
        """Whether the other alignment gives more of what follows; it then is the alignment from here on."""
        if not self._probes or self._base:
            return False
        self._probes -= 1
        here, there = (_sound_bytes(self._view, self._sure, base) for base in (0, HEADER_BYTES))
        if there <= here:
            return False
        self._base = HEADER_BYTES
        return True

    def _damage(self, begin: int) -> Damage:
        """What is damaged from `begin` on; zeroed blocks in a row are one damage."""
        code, self._sure = self._gap(begin)
        while (
            code == "zeroed" and self._sure < self._end and not any(self._view[self._sure : self._sure + _CHUNK_BYTES])
        ):
            self._sure = self._gap(self._sure)[1]
        return Damage(code, begin, self._sure - begin)

    def _gap(self, at: int) -> tuple[DamageCode, int]:
        """What is wrong from `at` on, and where the next sound chunk or block begins."""
        view, size = self._view, self._end
        end = _block_end(self._base, at)
        if end - at < _CHUNK_BYTES < size - at:
            end += BLOCK_BYTES  # padding, and the block behind it is damaged
        until = min(end, size)
        found = self._search(at + 1, until)
        zeros = not any(view[at : at + _CHUNK_BYTES])
        if found < size:
            return "zeroed" if zeros else "bad-chunk", found
        if size - at < _CHUNK_BYTES:
            return "truncated", size
        _, length, kind = _CHUNK.unpack_from(view, at)
        cut = _FULL <= kind <= _LAST and size < at + _CHUNK_BYTES + length <= end
        return "truncated" if cut else "zeroed" if zeros else "bad-chunk", size

    def _search(self, at: int, until: int) -> int:
        """Where the next sound chunk of a damaged block begins; `until` when there is none."""
        for found in _KIND.finditer(self._view[:until], at + 6):
            start = found.start() - 6
            _, length, _ = _CHUNK.unpack_from(self._view, start) if start + _CHUNK_BYTES <= until else (0, until, 0)
            if start + _CHUNK_BYTES + length > until or length == 0:
                continue
            self._search_left -= length
            if self._search_left < 0:
                return until
            if _is_sound(self._view, start, until):
                return start
        return until

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
            for at, body in self._parts:
                yield Damage(code, at, _CHUNK_BYTES + len(body))
            self._parts, self._held = [], 0


def _block_end(base: int, at: int) -> int:
    return base + ((at - base) // BLOCK_BYTES + 1) * BLOCK_BYTES


def _is_sound(view: memoryview, at: int, until: int) -> bool:
    if until - at < _CHUNK_BYTES:
        return False
    crc, length, kind = _CHUNK.unpack_from(view, at)
    stop = at + _CHUNK_BYTES + length
    return _FULL <= kind <= _LAST and stop <= until and zlib.crc32(view[at + 6 : stop]) == crc


def _sound_bytes(view: memoryview, at: int, base: int) -> int:
    """Bytes in sound chunks of the next blocks, when blocks are counted from `base`."""
    total, size = 0, min(len(view), at + _PROBE_BLOCKS * BLOCK_BYTES)
    while at < size:
        end = _block_end(base, at)
        until = min(end, len(view))
        while _is_sound(view, at, until):
            length = _CHUNK.unpack_from(view, at)[1]
            total += _CHUNK_BYTES + length
            at += _CHUNK_BYTES + length
        at = end
    return total
