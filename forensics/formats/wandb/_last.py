"""In which of many summary records each key stands last, without a look at any value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forensics.formats.wandb._varints import PAD, OddError
from forensics.formats.wandb._wire import cells_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forensics.formats.wandb._history import Row

    Ints = NDArray[np.int64]
    Words = NDArray[np.uint64]

_WORD_BYTES = 8
#: Odd multipliers with well-spread bits (those of the finaliser of MurmurHash3).
_MIX, _LAST_MIX = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_SLOT_BITS = 16


def last_of(rows: list[Row]) -> tuple[dict[bytes | int, int], list[int]]:
    """For the hash of each key the last row that holds it; and the rows that are to be read another way."""
    bodies = [data[at:end] for _, _, data, at, end in rows]
    sizes = np.fromiter(map(len, bodies), np.int64, len(bodies))
    text = np.frombuffer(bytearray().join((*bodies, PAD)), np.uint8)
    try:
        cells = cells_of(text, sizes)
    except OddError:
        return {}, list(range(len(rows)))
    row = cells.row
    # behind the last value stand keys to delete, or alone
    reached = np.zeros(len(rows), np.int64)
    reached[row] = cells.value_at + cells.value_len
    others: list[int] = np.flatnonzero(reached != np.cumsum(sizes)).tolist()
    hashes = _hashes(text, cells.key_at, cells.key_len)
    last = np.full(1 << _SLOT_BITS, -1)
    slot = (hashes >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
    last[slot] = np.arange(len(slot))
    missed = np.flatnonzero(hashes[last[slot]] != hashes)
    places = last[last >= 0]
    found = dict(zip(hashes[missed].tolist(), row[missed].tolist(), strict=True))
    found.update(zip(hashes[places].tolist(), row[places].tolist(), strict=True))
    return found, others


def _hashes(text: NDArray[np.uint8], at: Ints, size: Ints) -> Words:
    """A hash of all bytes of each key."""
    words = np.lib.stride_tricks.sliding_window_view(text, _WORD_BYTES)
    out = size.astype(np.uint64)
    for begin in range(0, int(size.max()), _WORD_BYTES):
        live = np.flatnonzero(size > begin) if begin else slice(None)
        word = np.ascontiguousarray(words[at[live] + begin]).view("<u8")[:, 0]
        over = np.maximum(begin + _WORD_BYTES - size[live], 0).astype(np.uint64) * np.uint64(8)
        out[live] = (out[live] ^ (word << over)) * _MIX
        out[live] ^= out[live] >> np.uint64(32)
    return out * _LAST_MIX
