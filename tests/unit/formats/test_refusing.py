"""The reader that tests compare with runs nothing either."""

from __future__ import annotations

import pickle

import pytest

from tests.unit.formats._refusing import unpickled


def test_plain_data_is_read_and_a_name_is_refused() -> None:
    assert unpickled(pickle.dumps({"a": [1, 2.5, None]})) == {"a": [1, 2.5, None]}
    with pytest.raises(pickle.UnpicklingError, match="print"):
        unpickled(b"c__builtin__\nprint\n(tR.")
