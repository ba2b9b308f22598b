"""In which of many summary records each key stands last, without a look at any value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forensics.formats.wandb._wire import PAD, OddError, cells_of, key_hashes

if TYPE_CHECKING:
    from forensics.formats.wandb._history import Row


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
    hashes = key_hashes(text, cells)
    last = np.full(1 << _SLOT_BITS, -1)
    slot = (hashes >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
    last[slot] = np.arange(len(slot))
    missed = np.flatnonzero(hashes[last[slot]] != hashes)
    places = last[last >= 0]
    found = dict(zip(hashes[missed].tolist(), row[missed].tolist(), strict=True))
    found.update(zip(hashes[places].tolist(), row[places].tolist(), strict=True))
    return found, others
