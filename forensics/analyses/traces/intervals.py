"""Unions of time intervals, exact in integer nanoseconds: the common cover of streams, and the gaps in it.

All arrays are int64 of one length; intervals are half-open [start, end). Intervals of different groups never merge.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

Ints = npt.NDArray[np.int64]


class Union(Struct, frozen=True):
    """Disjoint intervals, sorted by group and start."""

    group: Ints
    start: Ints
    end: Ints

    def totals(self, groups: int) -> Ints:
        """Nanoseconds covered in each of the groups 0 … `groups`-1."""
        out = np.zeros(groups, np.int64)
        np.add.at(out, self.group, self.end - self.start)
        return out


def union(group: Ints, start: Ints, end: Ints) -> Union:
    """Merge the intervals of each group that touch or overlap; empty ones are left out."""
    some = end > start
    g, a, b = group[some], start[some], end[some]
    if not ((g[1:] > g[:-1]) | ((g[1:] == g[:-1]) & (a[1:] >= a[:-1]))).all():
        order = np.lexsort((a, g))
        g, a, b = g[order], a[order], b[order]
    if not len(a):
        return Union(g, a, b)
    heads = np.flatnonzero(np.r_[True, g[1:] != g[:-1]])
    base = np.repeat(a[heads], np.diff(np.r_[heads, len(g)]))
    # every group is moved behind the one before it, so that one running maximum serves them all
    offset = (np.cumsum(np.r_[True, g[1:] != g[:-1]]) - 1) * (int((b - base).max()) + 1) - base
    reach = np.maximum.accumulate(b + offset)
    first = np.r_[True, a[1:] + offset[1:] > reach[:-1]]
    first[heads] = True
    starts = np.flatnonzero(first)
    lasts = np.r_[starts[1:], len(a)] - 1
    return Union(g[starts], a[starts], reach[lasts] - offset[lasts])


def union_of(rows: pl.DataFrame) -> Union:
    """Merge rows with `start_ns` and `end_ns` as one group."""
    return union(np.zeros(rows.height, np.int64), rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())


def gaps(of: Union) -> Union:
    """Give the gaps between the intervals of each group."""
    same = of.group[1:] == of.group[:-1]
    return Union(of.group[1:][same], of.end[:-1][same], of.start[1:][same])


def covered(by: Union, start: Ints, end: Ints) -> Ints:
    """Nanoseconds of each interval [start, end) that the union of one group covers."""
    if not len(by.start):
        return np.zeros(len(start), np.int64)
    before = np.r_[0, np.cumsum(by.end - by.start)]

    def until(at: Ints) -> Ints:
        index = np.searchsorted(by.start, at, side="right")
        inside = np.minimum(at, by.end[np.maximum(index - 1, 0)]) - by.start[np.maximum(index - 1, 0)]
        return before[np.maximum(index - 1, 0)] + np.where(index > 0, inside, 0)

    return np.maximum(until(end) - until(start), 0)
