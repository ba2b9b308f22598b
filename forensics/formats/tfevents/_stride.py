"""The stride route: a training loop writes the same tags in the same order, so the file is a matrix of bytes.

While lengths repeat with a period and all bytes but those of times, steps and values are equal from row to row, columns
are read as such. Every checksum is verified: that of a length is among the equal bytes, and that of a payload is an
affine function of the bytes that vary, so a few table look-ups per record tell what it must be. Whatever does not fit
is left to the other routes.
"""

from __future__ import annotations

import mmap

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from forensics.formats.tfevents._plan import Plan, Words
from forensics.formats.tfevents._points import Batch
from forensics.io.records.crc32c import PIECE_BITS, piece_table, unmasked

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
        period=plan.period,
    )
