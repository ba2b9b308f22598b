"""Fields of a protocol-buffer message, read without a message class and bounded by the message itself."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}


class WireError(ValueError):
    """The bytes are not a message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned 64-bit varint and the offset behind it.

    Raises `WireError` when it is cut or longer than ten bytes.
    """
    value = shift = 0
    for position in range(at, min(at + 10, len(data))):
        byte = data[position]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, position + 1
        shift += 7
    raise WireError("a varint is cut or too long")


def signed(value: int) -> int:
    """The 64-bit two's complement meaning of a varint."""
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Field number, wire type, start and end of each field between `at` and `end`.

    For a varint, start and end enclose its bytes; for bytes, its content. Raises `WireError` when a field runs over
    `end` or has a wire type that no known writer uses (groups).
    """
    while at < end:
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == BYTES:
            size, at = varint(data, at)
        elif kind == VARINT:
            size = varint(data, at)[1] - at
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise WireError("unknown wire type")
        if size > end - at or number == 0:
            raise WireError("a field runs over its message")
        yield number, kind, at, at + size
        at += size
