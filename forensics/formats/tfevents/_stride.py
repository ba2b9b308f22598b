"""The stride route: a training loop writes the same tags in the same order, so the file is a matrix of bytes.

While lengths repeat with a period and all bytes but those of times, steps and values are equal from row to row, columns
are read as such. Every checksum is verified: that of a length is among the equal bytes, and that of a payload is an
affine function of the bytes that vary, so a few table look-ups per record tell what it must be. Whatever does not fit
is left to the other routes.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from forensics.formats.tfevents._layout import Layout, learn
from forensics.formats.tfevents._points import Batch, Tags
from forensics.io.records.crc32c import PIECE_BITS, crc32c, piece_table, unmasked
from forensics.io.records.tfrecord import FRAME_BYTES, HEADER_BYTES, Chain

#: rows of about this size make inner loops long; a break of the period costs the quick route at most one row
_ROW_BYTES = 4_096
_MOST_ROW_BYTES = 1 << 20
_MOST_PERIOD = 4_096
#: periods that are compared as a whole; a file without one must not cost more than reading it otherwise
_TRIES = 16


class Words(Struct, frozen=True):
    """Little-endian 64-bit words of a row, as a dtype spread over the row and one without gaps.

    `kinds` are the distinct numbers of payload bytes behind the first byte of a word, `kind` the place of each word's
    among them, `mask` the bits that count (None: all), `first` the words of the plan's own row.
    """

    spread: np.dtype[np.void]
    packed: np.dtype[np.void]
    kinds: tuple[int, ...]
    kind: NDArray[np.int64]
    mask: NDArray[np.uint64] | None
    first: NDArray[np.uint64]


class Plan(Struct, frozen=True):
    """One row of the matrix: bits set in `equal` are those of `row` in all rows.

    `words`: those of times, steps, values and stored checksums (in the upper half). `begins`: offsets of the records,
    `base`: checksums of their payloads. `owner`: the record of each value, `firsts`: the first value of each record,
    `single`: every record has one value. `doubles`: which values have 8 bytes (None: none).
    """

    row: NDArray[np.uint8]
    equal: NDArray[np.uint8]
    words: tuple[Words, Words, Words, Words]
    step_bytes: int
    doubles: NDArray[np.bool_] | None
    begins: NDArray[np.int64]
    base: NDArray[np.uint32]
    owner: NDArray[np.int64]
    firsts: NDArray[np.int64]
    single: bool
    tags: NDArray[np.int32]


def plan_of(chain: Chain, tags: Tags) -> Plan | None:
    """Plan of the frames at the begin of a chain; None when they do not repeat, or hold something else than scalars."""
    payloads = _Payloads(chain)
    count = period_of(payloads)
    if not count:
        return None
    layouts: list[Layout] = []
    for k in range(count):
        layout = payloads.layout(k)
        if layout is None:
            return None
        layouts.append(layout)
    return _plan(chain.window[: chain.starts[count]], chain.starts[:count], layouts, tags)


class _Payloads:
    """Payloads of a chain, their layouts, and what in them is constant."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._known: dict[int, tuple[Layout | None, int, int]] = {}

    def __len__(self) -> int:
        return len(self.chain.starts)

    def bytes_of(self, k: int) -> bytes:
        begin = self.chain.starts[k] + HEADER_BYTES
        return self.chain.window[begin : begin + self.chain.lengths[k]]

    def layout(self, k: int) -> Layout | None:
        return self._learned(k)[0]

    def same(self, k: int, other: int) -> bool:
        """Whether the frames `k` and `other` differ only where the layout of `k` has numbers."""
        if self.chain.lengths[k] != self.chain.lengths[other]:
            return False
        layout, mask, constant = self._learned(k)
        return layout is not None and int.from_bytes(self.bytes_of(other)) & mask == constant

    def _learned(self, k: int) -> tuple[Layout | None, int, int]:
        found = self._known.get(k)
        if found is None:
            payload = self.bytes_of(k)
            layout = learn(payload)
            mask = int.from_bytes(layout.constant()) if layout else 0
            self._known[k] = found = (layout, mask, int.from_bytes(payload) & mask)
        return found


def period_of(payloads: _Payloads) -> int:
    """Fewest frames after which the frames at the begin come again, numbers aside; 0 when that is not seen twice."""
    tries = 0
    for period in range(1, min(len(payloads) // 2, _MOST_PERIOD) + 1):
        if not payloads.same(0, period):
            continue
        if all(payloads.same(k, k + period) for k in range(period)):
            return period if payloads.chain.starts[period] <= _MOST_ROW_BYTES else 0
        tries += 1
        if tries == _TRIES:
            return 0
    return 0


def _plan(once: bytes, starts: Sequence[int], layouts: Sequence[Layout], tags: Tags) -> Plan:
    size, times = len(once), max(1, _ROW_BYTES // len(once))
    begins = [size * turn + start for turn in range(times) for start in starts]
    all_layouts = [*layouts] * times
    where = list(zip(begins, all_layouts, strict=True))
    row = np.frombuffer(once * times, np.uint8)
    values = [(begin, layout, place) for begin, layout in where for place in layout.places]
    per_record = [len(layout.places) for layout in all_layouts]
    doubles = np.array([place.size_bytes == 8 for _, _, place in values])
    numbers = [tags.number(place.tag) for layout in layouts for place in layout.places]
    words = (
        _words(row, [(begin, layout.wall, layout, 8) for begin, layout in where]),
        _words(row, [(begin, layout.step, layout, layout.step_bytes) for begin, layout in where]),
        _words(row, [(begin, place.at, layout, place.size_bytes) for begin, layout, place in values]),
        _words(row, [(begin, layout.size_bytes - 4, layout, 8) for begin, layout in where]),
    )
    sums = [crc32c(once[s + HEADER_BYTES :][: o.size_bytes]) for s, o in zip(starts, layouts, strict=True)]
    return Plan(
        row=row,
        equal=np.frombuffer(b"".join(map(_equal, layouts)) * times, np.uint8),
        words=words,
        step_bytes=max(layout.step_bytes for layout in layouts),
        doubles=doubles if doubles.any() else None,
        begins=np.array(begins, np.int64),
        base=np.array(sums * times, np.uint32),
        owner=np.repeat(np.arange(len(begins)), per_record),
        firsts=np.cumsum([0, *per_record[:-1]]),
        single=max(per_record) == 1,
        tags=np.array(numbers * times, np.int32),
    )


def _equal(layout: Layout) -> bytes:
    checksum_bytes = FRAME_BYTES - HEADER_BYTES
    return b"\xff" * HEADER_BYTES + layout.constant() + bytes(checksum_bytes)


def _words(row: NDArray[np.uint8], places: Sequence[tuple[int, int, Layout, int]]) -> Words:
    """Words at (begin of the record, offset in the payload, its layout, bytes that count)."""
    names = [f"w{k}" for k in range(len(places))]
    formats = ["<u8"] * len(places)
    offsets = [begin + HEADER_BYTES + at for begin, at, _, _ in places]
    behind = [layout.size_bytes - 1 - at for _, at, layout, _ in places]
    kinds = sorted(set(behind))
    place_of = {b: k for k, b in enumerate(kinds)}
    mask = np.array([(1 << 8 * size) - 1 for _, _, _, size in places], np.uint64)
    spread = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": len(row)})
    packed = np.dtype({"names": names, "formats": formats})
    first = row.view(spread).astype(packed).view("<u8") & mask
    full = bool((mask == np.uint64(0xFFFFFFFFFFFFFFFF)).all())
    kind = np.array([place_of[b] for b in behind], np.int64)
    return Words(spread, packed, tuple(kinds), kind, None if full else mask, first)


#: a window and the columns made of it stay in the second-level cache
_WINDOW_BYTES = 1 << 20
_PIECE = (1 << PIECE_BITS) - 1


class Taken(Struct, frozen=True):
    """Points of the records from the start of a window on; `whole` when the window held nothing else."""

    batch: Batch
    records: int
    size_bytes: int
    whole: bool


def take(data: mmap.mmap | bytes, at: int, index: int, plan: Plan, most_bytes: int = _WINDOW_BYTES) -> Taken | None:
    """Points of the rows from byte `at` on, where frame number `index` begins; None when not one row fits.

    A window has `most_bytes` at most, or one row.
    """
    size = len(plan.row)
    count = min(len(data) - at, max(min(_WINDOW_BYTES, most_bytes), size)) // size
    fits = _equal_rows(np.ndarray((count, size), np.uint8, data, at), plan) if count else 0
    if not fits:
        return None
    walls, steps, values, stored = (_read(data, at, fits, words) for words in plan.words)
    sound = _sound(plan, walls, steps, values, stored)
    rows = fits if sound.all() else int(sound.all(axis=1).argmin())
    if not rows:
        return None
    batch = _batch(plan, (at, index), walls[:rows], _varints(steps[:rows], plan.step_bytes), values[:rows])
    return Taken(batch, rows * len(plan.begins), rows * size, rows == count)


def _equal_rows(rows: NDArray[np.uint8], plan: Plan) -> int:
    """How many rows, from the first on, are equal to the plan's where all must be."""
    some, every = np.bitwise_or.reduce(rows, axis=0), np.bitwise_and.reduce(rows, axis=0)
    if not (((some ^ plan.row) | (every ^ plan.row)) & plan.equal).any():
        return len(rows)
    return int(((rows ^ plan.row) & plan.equal).any(axis=1).argmax())


def _read(data: mmap.mmap | bytes, at: int, count: int, words: Words) -> NDArray[np.uint64]:
    rows: NDArray[np.void] = np.ndarray((count,), words.spread, data, at)
    found = rows.astype(words.packed).view("<u8").reshape(count, -1)
    return found if words.mask is None else found & words.mask


def _sound(
    plan: Plan,
    walls: NDArray[np.uint64],
    steps: NDArray[np.uint64],
    values: NDArray[np.uint64],
    stored: NDArray[np.uint64],
) -> NDArray[np.bool_]:
    """Whether the checksum of each payload holds (rows, records)."""
    off = unmasked((stored >> np.uint64(32)).astype(np.uint32)) ^ plan.base
    off ^= _added(walls, plan.words[0])
    off ^= _added(steps, plan.words[1])
    added = _added(values, plan.words[2])
    off ^= added if plan.single else np.bitwise_xor.reduceat(added, plan.firsts, axis=1)
    return off == 0


def _added(found: NDArray[np.uint64], words: Words) -> NDArray[np.uint32]:
    """What the difference of words to those of the first row adds to the checksums of their payloads."""
    differ = found ^ words.first
    bits = int(np.bitwise_or.reduce(differ, axis=None))
    out = np.zeros(found.shape, np.uint32)
    for shift in range(0, 64, PIECE_BITS):
        if not bits >> shift & _PIECE:
            continue
        piece = ((differ >> np.uint64(shift)) & np.uint64(_PIECE)).view(np.int64)
        if len(words.kinds) == 1:
            out ^= piece_table(words.kinds[0], shift).take(piece)
        else:
            piece += words.kind << PIECE_BITS
            out ^= np.concatenate([piece_table(behind, shift) for behind in words.kinds]).take(piece)
    return out


def _varints(words: NDArray[np.uint64], step_bytes: int) -> NDArray[np.int64]:
    steps = words & np.uint64(127)
    for k in range(1, step_bytes):
        steps |= (words >> np.uint64(k)) & np.uint64(127 << 7 * k)
    return steps.view(np.int64)


def _batch(
    plan: Plan, begin: tuple[int, int], walls: NDArray[np.uint64], steps: NDArray[np.int64], values: NDArray[np.uint64]
) -> Batch:
    at, index = begin
    row = np.arange(len(values), dtype=np.int64)[:, None]
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        floats = (values & np.uint64(0xFFFFFFFF)).astype(np.uint32).view("<f4").astype(np.float64)
    numbers = floats if plan.doubles is None else np.where(plan.doubles, values.view("<f8"), floats)
    if not plan.single:
        walls, steps = walls[:, plan.owner], steps[:, plan.owner]
    return Batch(
        tags=np.tile(plan.tags, len(values)),
        seq=(row * len(plan.begins) + (plan.owner + index)).ravel(),
        byte=(row * len(plan.row) + (plan.begins[plan.owner] + at)).ravel(),
        step=steps.ravel(),
        wall=walls.view("<f8").ravel(),
        value=numbers.ravel(),
    )
