"""Which row of a host thread encloses an instant most closely, without walking the events.

Rows of one thread nest. The depth of an instant is the number of rows begun less the number ended; the row that
encloses it most closely is the last one begun at that depth.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from forensics.analyses.traces.intervals import Ints


def innermost(rows: pl.DataFrame, at: pl.DataFrame) -> Ints:
    """Index into `rows` of the row that most closely encloses each instant, or -1.

    Args:
        rows: columns source, thread, start_ns, end_ns.
        at: columns source, thread, at_ns; an instant at a row's start lies within it.
    """
    out = np.full(at.height, -1, np.int64)
    keys = ["source", "thread"]
    threads = rows.with_row_index("row").partition_by(keys, as_dict=True)
    for key, asked in at.with_row_index("ask").partition_by(keys, as_dict=True).items():
        if (own := threads.get(key)) is not None:
            found = _of_thread(own["start_ns"].to_numpy(), own["end_ns"].to_numpy(), asked["at_ns"].to_numpy())
            index = own["row"].to_numpy().astype(np.int64)
            out[asked["ask"].to_numpy()] = np.where(found >= 0, index[found], -1)
    return out


def _of_thread(start: Ints, end: Ints, at: Ints) -> Ints:
    order = np.lexsort((-end, start))
    begun, ended = start[order], np.sort(end)
    # rank of each row by start stands for its time: equal starts then nest as they are sorted, longest outside
    depth = np.arange(1, len(order) + 1) - np.searchsorted(ended, begun, side="right")
    last = np.searchsorted(begun, at, side="right") - 1
    wanted = last + 1 - np.searchsorted(ended, at, side="right")
    found = _last_at_depth(depth, wanted, last)
    inside = (found >= 0) & (end[order][np.maximum(found, 0)] > at)
    return np.where(inside, order[np.maximum(found, 0)], -1)


def _last_at_depth(depth: npt.NDArray[np.int64], wanted: Ints, last: Ints) -> Ints:
    """Position of the last row at or before `last` whose depth is `wanted`, or -1."""
    size = len(depth) + 1
    by_depth = np.lexsort((np.arange(len(depth)), depth))
    keys = depth[by_depth] * size + by_depth
    index = np.searchsorted(keys, wanted * size + last, side="right") - 1
    found = by_depth[np.maximum(index, 0)]
    good = (index >= 0) & (wanted > 0) & (last >= 0)
    return np.where(good & (depth[found] == wanted), found, -1)
