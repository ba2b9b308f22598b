"""Numbers in 32 bits are read back to the last bit, however many are read at a time."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.store import words


@pytest.mark.parametrize("piece", [1, 7, 1_000])
def test_numbers_of_every_kind_are_read_back(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(words, "_PIECE", piece)
    seldom = 61.2 * 10**9 / 2**30  # printed in another unit
    numbers = np.array([3.25, 0.0125, -7.1, np.nan, np.inf, 3e-4, 5_012.0, 0.0, *[seldom] * 17, 1.5e300 / 1e300])
    held = words.worded(numbers)
    assert held is not None
    assert np.array_equal(words.read(held.words, held.kinds, held.often), numbers, equal_nan=True)
