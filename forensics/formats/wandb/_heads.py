"""What kind of record each of many is, from the first bytes of all of them."""

from __future__ import annotations

import numpy as np

from forensics.formats.wandb._usual import FEWEST_BYTES, LARGE, MOST_NUMBER_BYTES, MOST_SHIFT, NUMBER
from forensics.io.records.leveldb_log import Batch

#: A number of at most 10 bytes with its tag, the tag of the content and a length of at most 6 bytes.
_HEAD_BYTES = 24


def kinds_of(batch: Batch, view: memoryview) -> tuple[list[int], list[int]]:
    """Field and start of each history row or summary as `_wandb_usual.usual` gives them; 0 and 0 for other records."""
    starts = np.array(batch.starts, np.int64)
    size = np.array(batch.stops, np.int64) - starts
    each = np.frombuffer(view, np.uint8)
    h = each[np.minimum(starts[:, None] + np.arange(_HEAD_BYTES), len(each) - 1)]
    for n, record in batch.joined.items():
        h[n] = np.frombuffer(record.payload[:_HEAD_BYTES].ljust(_HEAD_BYTES, b"\0"), np.uint8)
        size[n] = len(record.payload)
    return _kinds(h, size)


def _kinds(
    h: np.ndarray[tuple[int, int], np.dtype[np.uint8]], size: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[list[int], list[int]]:
    each = np.arange(len(size))
    at = np.where((size > MOST_NUMBER_BYTES + 1) & (h[:, 0] == NUMBER), 2, 0)
    more = at > 0
    while (more := more & (h[each, at - 1] > 127) & (at < MOST_NUMBER_BYTES)).any():
        at[more] += 1
    tag = h[each, at]
    found = (size >= at + FEWEST_BYTES) & np.isin(tag, LARGE)
    length = (h[each, at + 1] & 127).astype(np.int64)
    at += 2
    more, shift = found.copy(), 7
    while shift < MOST_SHIFT and (more := more & (h[each, at - 1] > 127)).any():
        length[more] |= (h[each[more], at[more]].astype(np.int64) & 127) << shift
        at[more] += 1
        shift += 7
    found &= at + length == size
    return np.where(found, tag >> 3, 0).tolist(), np.where(found, at, 0).tolist()
