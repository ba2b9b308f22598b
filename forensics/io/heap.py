"""How the C library's allocator treats large blocks."""

from __future__ import annotations

_LARGEST_BYTES = 31 << 20


def keep_freed_blocks() -> None:
    """Let blocks of megabytes that are freed be used again, instead of given back to the system and zeroed anew.

    glibc maps a block of 128 KiB or more by itself until one that it mapped is freed: from then on it takes blocks of
    that size, at most 32 MiB, from its heap and keeps twice as much free (mallopt(3), M_MMAP_THRESHOLD). So one is
    freed here, untouched. Other allocators see a block come and go.
    """
    bytearray(_LARGEST_BYTES)
