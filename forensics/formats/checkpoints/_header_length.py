"""The length of a safetensors header, from the first bytes of a file; hostile lengths are none."""

from __future__ import annotations

LENGTH_BYTES = 8
#: Headers of the largest models with thousands of experts have some MB; the format itself allows 100 MB.
_MOST_BYTES = 8 << 20


def header_bytes(head: bytes, size_bytes: int) -> int | None:
    """Length of the header that the first nine bytes state; None where it cannot be one."""
    if len(head) <= LENGTH_BYTES or head[LENGTH_BYTES:] != b"{":
        return None
    length = int.from_bytes(head[:LENGTH_BYTES], "little")
    return length if 2 <= length <= min(_MOST_BYTES, size_bytes - LENGTH_BYTES) else None
