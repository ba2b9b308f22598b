"""What happens to files on half-dead disks, done to bytes in memory."""

from __future__ import annotations


def hit(data: bytes, kind: str, at: int, size: int) -> tuple[bytes, int, int]:
    """Damaged data, and which bytes of the sound data are touched: from, to."""
    end = min(at + size, len(data))
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ 0x24]) + data[at + 1 :], at, at + 1
    if kind == "zero":
        return data[:at] + bytes(end - at) + data[end:], at, end
    return (data[:at] + data[end:], at, end) if kind == "delete" else (data[:at], at, len(data))
