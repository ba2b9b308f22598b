"""CRC-32C by lanes and by rows gives what the definition gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.io.records.crc32c import crc32c, masked, masked_many


def by_definition(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x82F63B78 if crc & 1 else crc >> 1
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"", 0),
    ],
)
def test_the_published_vectors_hold(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@pytest.mark.parametrize("size", [8191, 8192, 8193, 9000, 20_001, 65_536])
def test_a_long_buffer_cut_into_lanes_gives_the_same(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    assert crc32c(data) == by_definition(data)


@given(st.binary(max_size=600), st.data())
def test_many_slices_at_once_give_what_each_alone_gives(data: bytes, draw: st.DataObject) -> None:
    cut = st.tuples(st.integers(0, len(data)), st.integers(0, len(data)))
    spans = [(min(a, b), abs(a - b)) for a, b in draw.draw(st.lists(cut, max_size=80))]
    starts, lengths = np.array([s for s, _ in spans], np.int64), np.array([n for _, n in spans], np.int64)
    assert masked_many(data, starts, lengths).tolist() == [masked(by_definition(data[s : s + n])) for s, n in spans]


def test_slices_longer_than_a_matrix_row_are_taken_alone() -> None:
    data = np.random.default_rng(5).integers(0, 256, 40_000, np.uint8).tobytes()
    starts, lengths = np.array([0, 3, 7], np.int64), np.array([39_000, 5, 20_000], np.int64)
    expected = [masked(crc32c(data[s : s + n])) for s, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
    assert masked_many(data, starts, lengths).tolist() == expected
