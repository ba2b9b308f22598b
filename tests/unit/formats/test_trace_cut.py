"""Bytes of a block compared in words of eight: never past the end of the block, and never wrong at it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forensics.formats.trace._skip import equal


def test_a_literal_that_ends_with_the_block_is_found_there() -> None:
    assert equal(b"x" * 20 + b"123456789012", np.array([20]), b"123456789012").tolist() == [True]


@given(st.binary(min_size=8, max_size=60), st.data())
def test_what_stands_at_each_place_is_what_a_slice_says(data: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(data) - 8))
    literal = draw.draw(st.one_of(st.binary(min_size=8, max_size=30), st.just(data[at:])))
    places = np.arange(-3, len(data) + 3)
    expected = [p >= 0 and data[p : p + len(literal)] == literal for p in places.tolist()]
    assert equal(data, places, literal).tolist() == expected


@given(st.binary(min_size=8, max_size=40), st.binary(min_size=1, max_size=7))
def test_a_short_literal_is_found_wherever_eight_bytes_remain(data: bytes, literal: bytes) -> None:
    places = np.arange(len(data) - 7)
    assert equal(data, places, literal).tolist() == [data[p : p + len(literal)] == literal for p in places.tolist()]
