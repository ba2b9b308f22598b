"""Framing of record files (TFRecord): length, its masked CRC-32C, payload, its masked CRC-32C; no index, no sync marks.

Records are verified in windows, so their checksums are computed side by side. After a broken header the next record is
the first offset whose length checksum and payload checksum both hold. Every byte of the file belongs to exactly one
`Record` or one `Damage`.

The layout is that of TensorFlow's `record_writer.h`: u64 length, u32 CRC of the length, payload, u32 CRC of the
payload, all little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from forensics.io.limits import DEFAULT, Limits
from forensics.io.records.crc32c import crc32c, masked, masked_many

HEADER_BYTES = 12
FRAME_BYTES = 16
WINDOW_BYTES = 4 << 20
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_KNOWN_LENGTHS = 65_536
_SMALL_BYTES = 2_048

Code = Literal["header-crc", "payload-crc", "truncated", "record-too-long"]


class Sliceable(Protocol):
    """Bytes, a memory map, or anything whose slices are bytes."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> bytes: ...


class Record(Struct, frozen=True):
    """A payload whose checksums hold; `byte` is where its frame begins, `index` counts frames from 0."""

    index: int
    byte: int
    payload: bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of its frame."""
        return len(self.payload) + FRAME_BYTES


class Damage(Struct, frozen=True):
    """`size_bytes` bytes from `byte` on that are no sound record; what stood there is frame number `index`."""

    index: int
    byte: int
    size_bytes: int
    code: Code


class Walk(Struct):
    """The state of a walk over a file: at byte `at`, before frame number `index`.

    `budget` bounds the payload bytes that resynchronisation may checksum; `window_bytes` shrinks at damage and grows
    again, so that a file of nothing but damage stays linear. `headers`: those whose checksum held, with their length; a
    file has few.
    """

    at: int
    index: int
    budget: int
    window_bytes: int
    headers: dict[bytes, int] = field(default_factory=dict[bytes, int])


class Chain(Struct, frozen=True):
    """Frames that are whole in a window and whose headers hold; `starts` counts from the begin of the window."""

    window: bytes
    starts: list[int]
    lengths: list[int]


class Frames(Struct, frozen=True):
    """Consecutive frames whose checksums hold; the first is number `index`, the window begins at `byte` of the file."""

    index: int
    byte: int
    window: bytes
    starts: list[int]
    lengths: list[int]

    def record(self, k: int) -> Record:
        """Give one of them alone."""
        start = self.starts[k]
        payload = self.window[start + HEADER_BYTES : start + HEADER_BYTES + self.lengths[k]]
        return Record(self.index + k, self.byte + start, payload)


def has_header(head: bytes) -> bool:
    """Whether these bytes begin with a length whose checksum holds."""
    return len(head) >= HEADER_BYTES and masked(crc32c(head[:8])) == _CRC.unpack_from(head, 8)[0]


def frame(payload: bytes) -> bytes:
    """One record as it is on disk."""
    length = _LENGTH.pack(len(payload))
    return length + _CRC.pack(masked(crc32c(length))) + payload + _CRC.pack(masked(crc32c(payload)))


def read(data: Sliceable, limits: Limits = DEFAULT, *, window_bytes: int = WINDOW_BYTES) -> Iterator[Record | Damage]:
    """Walk all frames of a file, in order; nothing is raised for damage.

    Memory stays within a few windows, or one record of at most `limits.record_bytes`.
    """
    walk = begin(data, limits, window_bytes)
    while walk.at < len(data):
        chain = chain_at(data, walk, limits)
        walk.window_bytes = min(2 * walk.window_bytes, window_bytes)
        for item in step(data, chain, walk, limits):
            if isinstance(item, Frames):
                yield from map(item.record, range(len(item.starts)))
            else:
                yield item


def begin(data: Sliceable, limits: Limits, window_bytes: int) -> Walk:
    """Begin at the first byte."""
    # an honest file needs one look at each payload; a hostile one could ask for one at every offset
    return Walk(0, 0, 4 * len(data) + limits.block_bytes, window_bytes)


def step(data: Sliceable, chain: Chain, walk: Walk, limits: Limits) -> Iterator[Frames | Damage]:
    """Give the frames of a chain that starts at the walk's position, or what is there instead; move the walk on."""
    if chain.starts:
        yield from _verified(data, chain, walk, limits)
    else:
        yield from _irregular(data, walk, limits)


def chain_at(data: Sliceable, walk: Walk, limits: Limits) -> Chain:
    """Follow the lengths from the walk's position, through one window; checksums of payloads are not looked at."""
    window = data[walk.at : walk.at + walk.window_bytes]
    starts: list[int] = []
    lengths: list[int] = []
    at, size, headers = 0, len(window), walk.headers
    while at + FRAME_BYTES <= size:
        header = window[at : at + HEADER_BYTES]
        length = headers.get(header)
        if length is None:
            length = _LENGTH.unpack_from(header)[0]
            if length > limits.record_bytes or not has_header(header):
                break
            if len(headers) < _KNOWN_LENGTHS:
                headers[header] = length
        end = at + FRAME_BYTES + length
        if end > size:
            break
        starts.append(at)
        lengths.append(length)
        at = end
    return Chain(window, starts, lengths)


def _verified(data: Sliceable, chain: Chain, walk: Walk, limits: Limits) -> Iterator[Frames | Damage]:
    """Yield the frames of a chain; a bad payload costs itself, and is searched where the chain breaks behind it."""
    window = chain.window
    first = np.array(chain.starts, np.int64) + HEADER_BYTES
    length = np.array(chain.lengths, np.int64)
    bad: list[int] = np.flatnonzero(masked_many(window, first, length) != u32_at(window, first + length)).tolist()
    base, index, done = walk.at, walk.index, 0
    for k in (*bad, len(chain.starts)):
        if k > done:
            yield Frames(index + done, base, window, chain.starts[done:k], chain.lengths[done:k])
            walk.at = base + chain.starts[k - 1] + FRAME_BYTES + chain.lengths[k - 1]
            walk.index = index + k
        if k == len(chain.starts):
            return
        end = base + chain.starts[k] + FRAME_BYTES + chain.lengths[k]
        if end < len(data) and not has_header(data[end : end + HEADER_BYTES]):
            yield from _skip(data, walk, "payload-crc", limits)
            return
        yield Damage(walk.index, walk.at, end - walk.at, "payload-crc")
        walk.at, walk.index, done = end, walk.index + 1, k + 1


def _irregular(data: Sliceable, walk: Walk, limits: Limits) -> Iterator[Frames | Damage]:
    """One step at a frame that is broken, cut, or larger than a window."""
    size = len(data)
    head = data[walk.at : walk.at + HEADER_BYTES]
    if len(head) < HEADER_BYTES:
        yield Damage(walk.index, walk.at, size - walk.at, "truncated")
        walk.at = size
        return
    length = _LENGTH.unpack_from(head)[0]
    end = walk.at + FRAME_BYTES + length
    sound_header = has_header(head)
    if end > size or length > limits.record_bytes:
        if sound_header and end <= size:
            yield Damage(walk.index, walk.at, end - walk.at, "record-too-long")
            walk.at, walk.index = end, walk.index + 1
        else:
            yield from _skip(data, walk, "truncated" if sound_header else "header-crc", limits)
        return
    # a flip in the header's own checksum leaves length and payload sound: that record is not lost
    window = data[walk.at : end] if sound_header or _spend(walk, length) else b""
    if not window or not _holds(window, length):
        yield from _skip(data, walk, "payload-crc" if sound_header else "header-crc", limits)
        return
    yield Frames(walk.index, walk.at, window, [0], [length])
    walk.at, walk.index = end, walk.index + 1


def _holds(frame_bytes: bytes, length: int) -> bool:
    """Whether the checksum of the payload of one frame holds; that of its length is another matter."""
    payload = frame_bytes[HEADER_BYTES : HEADER_BYTES + length]
    return masked(crc32c(payload)) == _CRC.unpack_from(frame_bytes, HEADER_BYTES + length)[0]


def _spend(walk: Walk, count: int) -> bool:
    walk.budget -= count
    return walk.budget >= 0


def _skip(data: Sliceable, walk: Walk, code: Code, limits: Limits) -> Iterator[Damage]:
    """Give up the bytes up to the next sound record, or to the end of the file."""
    walk.window_bytes = _SMALL_BYTES
    until = _resync(data, walk, limits)
    if until == len(data) and code == "payload-crc":
        end = walk.at + FRAME_BYTES + _LENGTH.unpack(data[walk.at : walk.at + 8])[0]
        if end < len(data):
            yield Damage(walk.index, walk.at, end - walk.at, code)
            walk.at, walk.index, code = end, walk.index + 1, "header-crc"
    if until == len(data) and code == "header-crc" and until - walk.at < FRAME_BYTES:
        code = "truncated"
    yield Damage(walk.index, walk.at, until - walk.at, code)
    walk.at, walk.index = until, walk.index + 1


def _resync(data: Sliceable, walk: Walk, limits: Limits) -> int:
    """First offset after the walk's position that begins a sound record; the size of the file if there is none."""
    size, at = len(data), walk.at + 1
    span = _SMALL_BYTES
    while at + FRAME_BYTES < size:
        block = data[at : at + span + HEADER_BYTES]
        for offset in sound_headers(block, min(size - at, limits.record_bytes + FRAME_BYTES)):
            length = _LENGTH.unpack_from(block, offset)[0]
            begins, ends = at + offset, at + offset + FRAME_BYTES + length
            if ends <= size and _spend(walk, length) and _holds(data[begins:ends], length):
                return begins
        at += span
        span = min(2 * span, 1 << 20)
    return size


# Offsets of a block at which a record of a record file may begin: the checksum of eight length bytes holds there.


def sound_headers(block: bytes, most: int) -> list[int]:
    """Offsets, rising, whose eight bytes are a length from 1 to `most` followed by its masked CRC-32C."""
    offsets = _plausible(block, most)
    if not len(offsets):
        return []
    sums = masked_many(block, offsets, np.full(len(offsets), 8, np.int64))
    found: list[int] = offsets[sums == u32_at(block, offsets + 8)].tolist()
    return found


def u32_at(window: bytes, positions: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Little-endian words at any offsets of a window, in order."""
    words = np.lib.stride_tricks.sliding_window_view(np.frombuffer(window, np.uint8), 4)
    return np.ascontiguousarray(words[positions]).view("<u4")[:, 0]


def _plausible(block: bytes, most: int) -> NDArray[np.int64]:
    """Offsets whose eight bytes are a length from 1 to `most`; all others cannot begin a record."""
    count = len(block) - HEADER_BYTES + 1
    if count <= 0:
        return np.zeros(0, np.int64)
    array = np.frombuffer(block, np.uint8)
    likely = array[7 : 7 + count] == 0
    for k in (4, 5, 6):
        likely &= array[k : k + count] == 0
    offsets = np.flatnonzero(likely)
    lengths = u32_at(block, offsets)
    return offsets[(lengths > 0) & (lengths <= most)]
