"""Sizes of the memory of devices (`machines/devices.jsonl`) and of an element of a tensor (`machines/dtypes.jsonl`).

A row of `devices` has `gib`, as vendors count it: what a run may have computed on that does not say it. A row of
`dtypes` has `dtype` (a name in lower case), `bytes`, `also` (other names of types as wide). Both have a `source`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from forensics.knowledge._rows import bare_rows


def least_size(gib: float) -> float | None:
    """Give the least size in GiB of a device that holds so much; None where none does."""
    return next((size for size in _device_sizes() if size >= gib), None)


def element_bytes(dtype: str) -> int | None:
    """Give the bytes of one element of a type, `torch.bfloat16` or `BFloat16`; None for a name that is not known."""
    return _widths().get(dtype.lower().removeprefix("torch."))


@cache
def _device_sizes() -> tuple[float, ...]:
    return tuple(sorted(float(row["gib"]) for row in bare_rows("machines/devices.jsonl")))


@cache
def _widths() -> Mapping[str, int]:
    return {name: row["bytes"] for row in bare_rows("machines/dtypes.jsonl") for name in (row["dtype"], *row["also"])}
