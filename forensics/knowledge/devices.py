"""Sizes of the memory of devices, from `devices.jsonl`: what a run may have computed on that does not say it."""

from __future__ import annotations

from functools import cache

from forensics.knowledge._rows import rows_of


def least_size(gib: float) -> float | None:
    """Give the least size in GiB, as vendors count it, of a device that holds so much; None where none does."""
    return next((size for size in _sizes() if size >= gib), None)


@cache
def _sizes() -> tuple[float, ...]:
    return tuple(sorted(float(row["gib"]) for row in rows_of("devices.jsonl")))
