"""Items and records as bytes between processes: JSON, checked against the types of the function that they are for.

Nothing is unpickled. Names of files that are no valid Unicode pass as they are, with lone surrogates.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO, TypeVar, cast

import msgspec

from forensics.values import field_names

T = TypeVar("T")
_LENGTH = struct.Struct(">I")
#: An item of 32 sources takes 10 kB; what is far above was not sent by us.
_MOST_BYTES = 256 << 20


def packed(value: Any) -> bytes:  # noqa: ANN401 - any value
    """Give a value as JSON."""
    return json.dumps(value, default=_plain).encode("ascii")


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value, any mapping
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return {name: getattr(value, name) for name in field_names(value)}


def unpacked(data: bytes, kind: type[T]) -> T:
    """Give the value back."""
    return msgspec.convert(json.loads(data), type=kind)


def send(stream: BinaryIO, data: bytes) -> None:
    """Write one message."""
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def received(stream: BinaryIO) -> bytes | None:
    """Read one message; None where the other side has gone."""
    head = _exactly(stream, _LENGTH.size)
    if head is None:
        return None
    (size,) = _LENGTH.unpack(head)
    return _exactly(stream, size) if size <= _MOST_BYTES else None


def _exactly(stream: BinaryIO, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = stream.read(size - len(parts))  # a pipe gives what it holds
        if not part:
            return None
        parts += part
    return bytes(parts)
