"""Offsets of a block at which a record of a record file may begin: the checksum of eight length bytes holds there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forensics.io.records.crc32c import masked_many

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HEADER_BYTES = 12


def sound_headers(block: bytes, most: int) -> list[int]:
    """Offsets, rising, whose eight bytes are a length from 1 to `most` followed by its masked CRC-32C."""
    import numpy as np  # noqa: PLC0415 - only runs with record files pay for it

    offsets = _plausible(block, most)
    if not len(offsets):
        return []
    sums = masked_many(block, offsets, np.full(len(offsets), 8, np.int64))
    found: list[int] = offsets[sums == u32_at(block, offsets + 8)].tolist()
    return found


def u32_at(window: bytes, positions: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Little-endian words at any offsets of a window, in order."""
    import numpy as np  # noqa: PLC0415

    words = np.lib.stride_tricks.sliding_window_view(np.frombuffer(window, np.uint8), 4)
    return np.ascontiguousarray(words[positions]).view("<u4")[:, 0]


def _plausible(block: bytes, most: int) -> NDArray[np.int64]:
    """Offsets whose eight bytes are a length from 1 to `most`; all others cannot begin a record."""
    import numpy as np  # noqa: PLC0415

    count = len(block) - _HEADER_BYTES + 1
    if count <= 0:
        return np.zeros(0, np.int64)
    array = np.frombuffer(block, np.uint8)
    likely = array[7 : 7 + count] == 0
    for k in (4, 5, 6):
        likely &= array[k : k + count] == 0
    offsets = np.flatnonzero(likely)
    lengths = u32_at(block, offsets)
    return offsets[(lengths > 0) & (lengths <= most)]
