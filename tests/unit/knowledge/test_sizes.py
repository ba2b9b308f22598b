from __future__ import annotations

import pytest

from forensics.knowledge.sizes import element_bytes


@pytest.mark.parametrize(
    ("dtype", "size_bytes"),
    [("torch.bfloat16", 2), ("BFloat16", 2), ("Float8_e4m3fn", 1), ("ComplexFloat", 8), ("int64", 8), ("half", 2)],
)
def test_a_type_has_one_size_however_it_is_spelled(dtype: str, size_bytes: int) -> None:
    assert element_bytes(dtype) == size_bytes


def test_an_unknown_type_has_no_size() -> None:
    assert element_bytes("float7") is None
