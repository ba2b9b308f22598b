"""How many bytes an element of a tensor takes, by the names of its type, from `dtypes.jsonl`.

A row has `dtype` (a name in lower case), `bytes`, `also` (other names of types as wide) and its `source`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from forensics.knowledge._rows import rows_of


def element_bytes(dtype: str) -> int | None:
    """Give the bytes of one element of a type, `torch.bfloat16` or `BFloat16`; None for a name that is not known."""
    return _by_name().get(dtype.lower().removeprefix("torch."))


@cache
def _by_name() -> Mapping[str, int]:
    return {name: row["bytes"] for row in rows_of("dtypes.jsonl") for name in (row["dtype"], *row["also"])}
