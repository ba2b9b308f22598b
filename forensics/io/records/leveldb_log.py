"""Records of a LevelDB log with zlib checksums, as W&B writes its transaction logs; damage is passed over and told.

A file has a header of 7 bytes, then blocks of 32,768 bytes. Chunks are: checksum (4 bytes), length (2), kind (1), data.
The checksum is the plain CRC-32 of the kind and the data. Blocks count from the start of the file; one generation of
writers counted them from the end of the header, and where bytes are missing they count from anywhere. So where a sound
chunk runs over the end of its block, the blocks are counted anew: a chunk that goes on in the next one ends its own.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator
from typing import Literal, NamedTuple

from msgspec import Struct, field

from forensics.io.limits import DEFAULT, Limits
from forensics.patterns import lazily

BLOCK_BYTES = 32_768
HEADER_BYTES = 7
#: A chunk's checksum, length and kind, and their bytes.
CHUNK_BYTES = 7
CHUNK = struct.Struct("<IHB")
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
#: Chunks are followed so far for one that ends its block.
_PROBE_BYTES = 64 * BLOCK_BYTES
#: Bytes that may be checksummed in search of sound chunks: at least so many, or so many times the size of the log.
_SEARCH_BYTES, _SEARCH_TIMES = 256 << 20, 4
_KIND = lazily(rb"[\x01-\x04]")
#: Records of about so many bytes of the file are given together.
_BATCH_BYTES = 4 << 20

DamageCode = Literal["truncated", "zeroed", "bad-chunk", "unfinished", "record-too-long"]


class Record(NamedTuple):
    """One record; `spans` are (offset in the payload, offset in the file) of its parts, in order."""

    number: int
    byte: int
    payload: bytes
    spans: tuple[tuple[int, int], ...]

    def file_byte(self, at: int) -> int:
        """Where byte `at` of the payload is in the file."""
        start, place = next((span for span in reversed(self.spans) if span[0] <= at), self.spans[0])
        return place + at - start


class Damage(NamedTuple):
    """Bytes of the file that gave no record."""

    code: DamageCode
    byte: int
    size_bytes: int


class Batch(Struct, frozen=True):
    """Consecutive sound records; the first is record `number` of the log.

    The payload of the n-th is `starts[n]` to `stops[n]` of the file; one that has several parts is in `joined`, by n.
    """

    number: int
    starts: list[int] = field(default_factory=list[int])
    stops: list[int] = field(default_factory=list[int])
    joined: dict[int, Record] = field(default_factory=dict[int, Record])

    def byte(self, n: int) -> int:
        """Where the n-th record begins in the file."""
        return self.starts[n] - CHUNK_BYTES

    def record(self, n: int, view: memoryview) -> Record:
        """Copy the n-th record out of the file."""
        if (found := self.joined.get(n)) is not None:
            return found
        start = self.starts[n]
        return Record(self.number + n, self.byte(n), bytes(view[start : self.stops[n]]), ((0, start),))


def batches(view: memoryview, limits: Limits = DEFAULT) -> Iterator[Batch | Damage]:
    """Every sound record in order, and every stretch that gives none; all sizes in bytes of the file.

    `truncated` is the tail that a killed writer leaves; `unfinished` are the parts of a record whose end is missing.
    """
    yield from _Reader(view, limits).run()


def records(data: mmap.mmap | bytes, limits: Limits = DEFAULT) -> Iterator[Record | Damage]:
    """Give the same one by one."""
    with memoryview(data) as view:
        for item in batches(view, limits):
            if isinstance(item, Damage):
                yield item
            else:
                yield from (item.record(n, view) for n in range(len(item.starts)))


class _Reader:
    """One pass over a log; blocks count from byte `_base` on, which any damage may change."""

    def __init__(self, view: memoryview, limits: Limits) -> None:
        self._view = view
        self._limits = limits
        self._base = 0
        self._end = len(view)
        self._sure = min(HEADER_BYTES, self._end)
        self._search_left = max(_SEARCH_BYTES, _SEARCH_TIMES * self._end)
        self._parts: list[tuple[int, bytes]] = []
        self._held = 0
        self._index = 0

    def run(self) -> Iterator[Batch | Damage]:
        """Read all."""
        while self._sure < self._end:
            yield from self._sound()
            if self._sure >= self._end or self._realigned():
                continue
            yield from self._drop("unfinished")
            yield self._damage(self._sure)
        yield from self._drop("unfinished")

    def _sound(self) -> Iterator[Batch | Damage]:
        """Records up to the next damage, which is then at `_sure`, or behind the padding there."""
        view, size, longest = self._view, self._end, self._limits.record_bytes
        unpack, crc32, at = CHUNK.unpack_from, zlib.crc32, self._sure
        most_bytes = min(_BATCH_BYTES, self._limits.block_bytes)
        batch, begun = Batch(self._index), at
        begins, ends = batch.starts.append, batch.stops.append
        while at < size:
            end = _block_end(self._base, at)
            until = min(end, size)
            while at <= until - CHUNK_BYTES:
                crc, length, kind = unpack(view, at)
                start = at + CHUNK_BYTES
                stop = start + length
                if stop > until or crc32(view[at + 6 : stop]) != crc or not FULL <= kind <= LAST:
                    yield self._counted(batch)
                    return
                if kind == FULL and length <= longest and not self._parts:
                    begins(start)
                    ends(stop)
                else:
                    if lost := self._part(kind, at, bytes(view[start:stop])):
                        yield self._counted(batch)
                        yield from lost
                        batch = Batch(self._index)
                        begins, ends = batch.starts.append, batch.stops.append
                    if self._parts and kind in {FULL, LAST}:
                        self._join(batch)
                at = self._sure = stop
            if end > size:
                break
            at = end
            if at - begun >= most_bytes:
                yield self._counted(batch)
                batch, begun = Batch(self._index), at
                begins, ends = batch.starts.append, batch.stops.append
        else:
            self._sure = size
        yield self._counted(batch)

    def _counted(self, batch: Batch) -> Batch:
        self._index = batch.number + len(batch.starts)
        return batch

    def _realigned(self) -> bool:
        """Whether a sound chunk is here, or behind padding, so that blocks begin elsewhere; they then do so."""
        base = self._base_at(self._sure)
        if base is None or base == self._base:
            return False
        self._base = base
        return True

    def _base_at(self, begin: int) -> int | None:
        """Where blocks begin, modulo their size, so that the chunk at `begin` or behind padding there can be read."""
        at = begin
        first = stop = self._stop(at)
        while stop and at - begin < _PROBE_BYTES:
            goes_on = self._view[at + CHUNK_BYTES - 1] in {FIRST, MIDDLE}
            at = stop
            if goes_on:
                break
            stop = self._stop(at)
        else:
            # where no chunk goes on, padding ends the block
            at += next((n for n in range(1, CHUNK_BYTES) if self._is_padded(at, n)), 0)
        if at == begin:
            return None
        base = at % BLOCK_BYTES
        return base if first <= _block_end(base, begin) else begin % BLOCK_BYTES

    def _is_padded(self, at: int, count: int) -> bool:
        """Whether so many zeros precede a sound chunk."""
        return not any(self._view[at : at + count]) and self._stop(at + count) > 0

    def _stop(self, at: int) -> int:
        """Where the chunk at an offset ends, wherever blocks do; 0 when it is not sound, or too much was looked at."""
        view, start = self._view, at + CHUNK_BYTES
        if start > self._end:
            return 0
        crc, length, kind = CHUNK.unpack_from(view, at)
        stop = start + length
        if not FULL <= kind <= LAST or start + length > self._end or length > BLOCK_BYTES - CHUNK_BYTES:
            return 0
        self._search_left -= length
        return stop if self._search_left >= 0 and zlib.crc32(view[at + 6 : stop]) == crc else 0

    def _damage(self, begin: int) -> Damage:
        """The damage from `begin` on; zeroed blocks in a row are one damage."""
        code, self._sure = self._gap(begin)
        while (
            code == "zeroed" and self._sure < self._end and not any(self._view[self._sure : self._sure + CHUNK_BYTES])
        ):
            self._sure = self._gap(self._sure)[1]
        return Damage(code, begin, self._sure - begin)

    def _gap(self, at: int) -> tuple[DamageCode, int]:
        """The damage from `at` on, and the place of the next sound chunk or block."""
        view, size = self._view, self._end
        end = _block_end(self._base, at)
        if end - at < CHUNK_BYTES < size - at:
            end += BLOCK_BYTES  # padding, and the block behind it is damaged
        until = min(end, size)
        found = self._search(at + 1, until)
        zeros = not any(view[at : at + CHUNK_BYTES])
        if found < size:
            return "zeroed" if zeros else "bad-chunk", found
        if size - at < CHUNK_BYTES:
            return "truncated", size
        _, length, kind = CHUNK.unpack_from(view, at)
        cut = FULL <= kind <= LAST and size < at + CHUNK_BYTES + length <= end
        return "truncated" if cut else "zeroed" if zeros else "bad-chunk", size

    def _search(self, at: int, until: int) -> int:
        """The place of the next sound chunk that begins in a damaged block; `until` without one."""
        for found in _KIND.finditer(self._view[: until + CHUNK_BYTES - 1], at + CHUNK_BYTES - 1):
            start = found.start() - CHUNK_BYTES + 1
            if any(self._view[start + 4 : start + 6]) and self._stop(start):
                return start
        return until

    def _part(self, kind: int, at: int, body: bytes) -> list[Damage]:
        """Take a part of a record; what turns out to be lost by it."""
        lost: list[Damage] = []
        if kind in {FULL, FIRST}:
            lost += self._drop("unfinished")
        elif not self._parts:
            return [Damage("unfinished", at, CHUNK_BYTES + len(body))]
        self._parts.append((at, body))
        self._held += len(body)
        if self._held > self._limits.record_bytes:
            lost += self._drop("record-too-long")
        return lost

    def _join(self, batch: Batch) -> None:
        """Make a record of the parts that are held."""
        spans: list[tuple[int, int]] = []
        reached = 0
        for at, body in self._parts:
            spans.append((reached, at + CHUNK_BYTES))
            reached += len(body)
        byte, payload = self._parts[0][0], b"".join([body for _, body in self._parts])
        self._parts, self._held = [], 0
        n = len(batch.starts)
        batch.joined[n] = Record(batch.number + n, byte, payload, tuple(spans))
        batch.starts.append(byte + CHUNK_BYTES)
        batch.stops.append(byte + CHUNK_BYTES)

    def _drop(self, code: DamageCode) -> Iterator[Damage]:
        if self._parts:
            for at, body in self._parts:
                yield Damage(code, at, CHUNK_BYTES + len(body))
            self._parts, self._held = [], 0


def _block_end(base: int, at: int) -> int:
    return base + ((at - base) // BLOCK_BYTES + 1) * BLOCK_BYTES
