"""Framing of record files (TFRecord): length, its masked CRC-32C, payload, its masked CRC-32C; no index, no sync marks.

Records are verified in windows, so their checksums are computed side by side. After a broken header the next record is
the first offset whose length checksum and payload checksum both hold. Every byte of the file belongs to exactly one
`Record` or one `Damage`.

The layout is that of TensorFlow's `record_writer.h`: u64 length, u32 CRC of the length, payload, u32 CRC of the
payload, all little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from forensics.io.crc32c import crc32c, masked, masked_many
from forensics.io.limits import DEFAULT, Limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


@dataclass(frozen=True, slots=True)
class Record:
    """A payload whose checksums hold; `byte` is where its frame begins, `index` counts frames from 0."""

    index: int
    byte: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """`size_bytes` bytes from `byte` on that are no sound record; what stood there is frame number `index`."""

    index: int
    byte: int
    size_bytes: int
    code: Code


@dataclass(slots=True)
class _Walk:
    """Where the walk stands.

    `budget` bounds the payload bytes that resynchronisation may checksum; `window_bytes` shrinks at damage and grows
    again, so that a file of nothing but damage stays linear.
    """

    at: int
    index: int
    budget: int
    window_bytes: int


@dataclass(frozen=True, slots=True)
class _Chain:
    """Frames that lie whole in a window and whose headers hold."""

    window: bytes
    starts: list[int]
    lengths: list[int]


def has_header(head: bytes) -> bool:
    """Whether these bytes begin with a length whose checksum holds."""
    return len(head) >= HEADER_BYTES and masked(crc32c(head[:8])) == _CRC.unpack_from(head, 8)[0]


def frame(payload: bytes) -> bytes:
    """One record as it stands on disk."""
    length = _LENGTH.pack(len(payload))
    return length + _CRC.pack(masked(crc32c(length))) + payload + _CRC.pack(masked(crc32c(payload)))


def read(data: Sliceable, limits: Limits = DEFAULT, *, window_bytes: int = WINDOW_BYTES) -> Iterator[Record | Damage]:
    """Walk all frames of a file, in order; nothing is raised for damage.

    Memory stays within a few windows, or one record of at most `limits.record_bytes`.
    """
    size = len(data)
    # an honest file needs one look at each payload; a hostile one could ask for one at every offset
    walk = _Walk(0, 0, 4 * size + limits.block_bytes, window_bytes)
    known = _length_checksums()
    while walk.at < size:
        chain = _chain(data[walk.at : walk.at + walk.window_bytes], limits.record_bytes, known)
        walk.window_bytes = min(2 * walk.window_bytes, window_bytes)
        if chain.starts:
            yield from _verified(data, chain, walk, limits)
        else:
            yield from _irregular(data, walk, limits)


def _length_checksums() -> Callable[[bytes], int]:
    """Masked checksum of eight length bytes, remembered: a file has few distinct lengths."""
    seen: dict[bytes, int] = {}

    def checksum(raw: bytes) -> int:
        found = seen.get(raw)
        if found is None:
            found = masked(crc32c(raw))
            if len(seen) < _KNOWN_LENGTHS:
                seen[raw] = found
        return found

    return checksum


def _chain(window: bytes, most: int, known: Callable[[bytes], int]) -> _Chain:
    starts: list[int] = []
    lengths: list[int] = []
    at, size = 0, len(window)
    while at + FRAME_BYTES <= size:
        raw = window[at : at + 8]
        length = _LENGTH.unpack(raw)[0]
        end = at + FRAME_BYTES + length
        if end > size or length > most or known(raw) != _CRC.unpack_from(window, at + 8)[0]:
            break
        starts.append(at)
        lengths.append(length)
        at = end
    return _Chain(window, starts, lengths)


def _verified(data: Sliceable, chain: _Chain, walk: _Walk, limits: Limits) -> Iterator[Record | Damage]:
    """Yield the frames of a chain; a bad payload costs itself, and is searched where the chain breaks behind it."""
    import numpy as np  # noqa: PLC0415

    window = chain.window
    begin = np.array(chain.starts, np.int64) + HEADER_BYTES
    length = np.array(chain.lengths, np.int64)
    stored = _u32_at(window, begin + length)
    good: list[bool] = (masked_many(window, begin, length) == stored).tolist()
    base = walk.at
    for start, size, sound in zip(chain.starts, chain.lengths, good, strict=True):
        end = base + start + FRAME_BYTES + size
        if sound:
            payload = window[start + HEADER_BYTES : start + HEADER_BYTES + size]
            yield Record(walk.index, walk.at, payload)
        elif end < len(data) and not has_header(data[end : end + HEADER_BYTES]):
            yield from _skip(data, walk, "payload-crc", limits)
            return
        else:
            yield Damage(walk.index, walk.at, end - walk.at, "payload-crc")
        walk.at = end
        walk.index += 1


def _u32_at(window: bytes, positions: NDArray[np.int64]) -> NDArray[np.uint32]:
    import numpy as np  # noqa: PLC0415

    words = np.lib.stride_tricks.sliding_window_view(np.frombuffer(window, np.uint8), 4)
    return np.ascontiguousarray(words[positions]).view("<u4")[:, 0]


def _irregular(data: Sliceable, walk: _Walk, limits: Limits) -> Iterator[Record | Damage]:
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
    payload = _payload(data, walk.at, length) if sound_header or _spend(walk, length) else None
    if payload is None:
        yield from _skip(data, walk, "payload-crc" if sound_header else "header-crc", limits)
        return
    yield Record(walk.index, walk.at, payload)
    walk.at, walk.index = end, walk.index + 1


def _payload(data: Sliceable, at: int, length: int) -> bytes | None:
    body = data[at + HEADER_BYTES : at + FRAME_BYTES + length]
    payload = body[:length]
    return payload if masked(crc32c(payload)) == _CRC.unpack_from(body, length)[0] else None


def _spend(walk: _Walk, count: int) -> bool:
    walk.budget -= count
    return walk.budget >= 0


def _skip(data: Sliceable, walk: _Walk, code: Code, limits: Limits) -> Iterator[Damage]:
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


def _resync(data: Sliceable, walk: _Walk, limits: Limits) -> int:
    """First offset after the walk's position that begins a sound record; the size of the file if there is none."""
    import numpy as np  # noqa: PLC0415

    size, at = len(data), walk.at + 1
    step = _SMALL_BYTES
    while at + FRAME_BYTES < size:
        block = data[at : at + step + HEADER_BYTES]
        offsets = _plausible(block, min(size - at, limits.record_bytes + FRAME_BYTES))
        if len(offsets):
            sums = masked_many(block, offsets, np.full(len(offsets), 8, np.int64))
            offsets = offsets[sums == _u32_at(block, offsets + 8)]
        for offset in offsets.tolist():
            length = _LENGTH.unpack_from(block, offset)[0]
            fits = at + offset + FRAME_BYTES + length <= size
            if fits and _spend(walk, length) and _payload(data, at + offset, length) is not None:
                return at + offset
        at += step
        step = min(2 * step, 1 << 20)
    return size


def _plausible(block: bytes, most: int) -> NDArray[np.int64]:
    """Offsets whose eight bytes are a length from 1 to `most`; all others cannot begin a record."""
    import numpy as np  # noqa: PLC0415

    count = len(block) - HEADER_BYTES + 1
    if count <= 0:
        return np.zeros(0, np.int64)
    array = np.frombuffer(block, np.uint8)
    likely = array[7 : 7 + count] == 0
    for k in (4, 5, 6):
        likely &= array[k : k + count] == 0
    offsets = np.flatnonzero(likely)
    lengths = _u32_at(block, offsets)
    return offsets[(lengths > 0) & (lengths <= most)]
