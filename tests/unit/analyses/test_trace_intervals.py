"""Unions of intervals against sets of nanoseconds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forensics.analyses.traces.intervals import Ints, Union, covered, gaps, union

INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 12)), max_size=30)
ORIGIN = 1_700_000_000_000_000_000


def merged(rows: list[tuple[int, int, int]]) -> Union:
    group, start, dur = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    return union(group, start + ORIGIN, start + dur + ORIGIN)


def instants(rows: list[tuple[int, int, int]], group: int) -> set[int]:
    return {at for g, start, dur in rows if g == group for at in range(start, start + dur)}


def pieces(found: Union) -> list[tuple[int, int, int]]:
    return [
        (int(g), int(a) - ORIGIN, int(b) - ORIGIN) for g, a, b in zip(found.group, found.start, found.end, strict=True)
    ]


@given(INTERVALS)
def test_a_union_covers_each_nanosecond_once(rows: list[tuple[int, int, int]]) -> None:
    found = merged(rows)
    assert found.totals(3).tolist() == [len(instants(rows, group)) for group in range(3)]
    for group in range(3):
        own = [(a, b) for g, a, b in pieces(found) if g == group]
        assert {at for a, b in own for at in range(a, b)} == instants(rows, group)
        assert all(b < a for (_, b), (a, _) in pairwise(own)), "touching intervals are one"


@given(INTERVALS)
def test_gaps_are_what_a_union_leaves_out_between_its_ends(rows: list[tuple[int, int, int]]) -> None:
    between = pieces(gaps(merged(rows)))
    for group in range(3):
        seen = instants(rows, group)
        whole = set(range(min(seen), max(seen) + 1)) if seen else set[int]()
        assert {at for g, a, b in between if g == group for at in range(a, b)} == whole - seen


@given(INTERVALS, st.integers(0, 50), st.integers(0, 20))
def test_what_a_union_covers_of_an_interval_is_counted_exactly(
    rows: list[tuple[int, int, int]], start: int, dur: int
) -> None:
    one = [(0, a, d) for _, a, d in rows]

    def at(value: int) -> Ints:
        return np.array([value + ORIGIN], np.int64)

    found = covered(merged(one), at(start), at(start + dur))
    assert found.tolist() == [len(instants(one, 0) & set(range(start, start + dur)))]
