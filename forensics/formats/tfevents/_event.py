"""TensorBoard's `Event` message, as far as metrics need it: time, step, session marks, and the values of a summary.

Field numbers are those of tensorboard's `event.proto` and `summary.proto`. Graphs are passed over by their length.
A repeated occurrence of a single field replaces the earlier one, as the message classes do for scalars.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from msgspec import Struct

from forensics.io.records.protobuf import BYTES, FIXED32, FIXED64, VARINT, WireError, fields, signed, varint

SESSION_START = 1
_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")
_STRING_TENSOR = 7
_BFLOAT16, _HALF = 14, 19
#: dtype → how one element is written in `tensor_content`
_PACKED = {
    1: struct.Struct("<f"),
    2: struct.Struct("<d"),
    3: struct.Struct("<i"),
    4: struct.Struct("<B"),
    5: struct.Struct("<h"),
    6: struct.Struct("<b"),
    9: struct.Struct("<q"),
    10: struct.Struct("<?"),
    17: struct.Struct("<H"),
    _HALF: struct.Struct("<e"),
    22: struct.Struct("<I"),
    23: struct.Struct("<Q"),
}
#: dtype → field that repeats its values
_FIELD = {1: 5, 2: 6, 3: 7, 4: 7, 5: 7, 6: 7, 9: 10, 10: 11, _BFLOAT16: 13, 17: 7, _HALF: 13, 22: 16, 23: 17}
_WORD = struct.Struct("<H")


class Value(Struct, frozen=True):
    """One value of a summary; `scalar` is None where it is something else, whose bytes `raw` a message class reads."""

    tag: str
    scalar: float | None
    plugin: str
    is_text: bool
    raw: bytes


class Event(Struct, frozen=True):
    """One record; `wall_time` in unix seconds, `session` the status of a session mark, `summaries` byte ranges."""

    wall_time: float = 0.0
    step: int = 0
    file_version: str = ""
    session: int = 0
    summaries: tuple[tuple[int, int], ...] = ()


def parse_event(data: bytes) -> Event:
    """Read the outer fields of one payload; raises `WireError` when the payload is not a message."""
    wall_time, step, version, session = 0.0, 0, "", 0
    summaries: list[tuple[int, int]] = []
    for number, kind, start, end in fields(data, 0, len(data)):
        if number == 1 and kind == FIXED64:
            wall_time = _DOUBLE.unpack_from(data, start)[0]
        elif number == 2 and kind == VARINT:
            step = signed(varint(data, start)[0])
        elif number == 5 and kind == BYTES:
            summaries.append((start, end))
        elif number == 3 and kind == BYTES:
            version = data[start:end].decode("utf-8", "replace")
        elif number == 7 and kind == BYTES:
            session = _status(data, start, end)
    return Event(wall_time, step, version, session, tuple(summaries))


def _status(data: bytes, start: int, end: int) -> int:
    status = 0
    for number, kind, at, _ in fields(data, start, end):
        if number == 1 and kind == VARINT:
            status = varint(data, at)[0]
    return status


def values(data: bytes, event: Event) -> Iterator[Value]:
    """Values of the summaries of one record, in order.

    Raises `WireError` at the first value that is not a message; those before it have been given.
    """
    for begin, finish in event.summaries:
        for number, kind, start, end in fields(data, begin, finish):
            if number == 1 and kind == BYTES:
                yield _value(data, start, end)


def _value(data: bytes, begin: int, finish: int) -> Value:
    tag, scalar, plugin, is_text, tensor = "", None, "", False, None
    for number, kind, start, end in fields(data, begin, finish):
        if number == 1 and kind == BYTES:
            tag = data[start:end].decode("utf-8", "replace")
        elif number == 2 and kind == FIXED32:
            scalar, tensor = _FLOAT.unpack_from(data, start)[0], None
        elif number == 8 and kind == BYTES:
            scalar, tensor = None, (start, end)
        elif number == 9 and kind == BYTES:
            plugin = _plugin(data, start, end)
        elif number in (3, 4, 5, 6):
            scalar = tensor = None
    if tensor is not None:
        dtype, scalar = tensor_scalar(data, *tensor)
        is_text = dtype == _STRING_TENSOR
    plain = scalar is not None and not plugin
    return Value(tag, scalar, plugin, is_text, b"" if plain else data[begin:finish])


def _plugin(data: bytes, begin: int, finish: int) -> str:
    name = ""
    for number, kind, start, end in fields(data, begin, finish):
        if number == 1 and kind == BYTES:
            for inner, inner_kind, at, to in fields(data, start, end):
                if inner == 1 and inner_kind == BYTES:
                    name = data[at:to].decode("utf-8", "replace")
    return name


__all__ = ["SESSION_START", "Event", "Value", "WireError", "parse_event", "values"]


# The single number of a rank-0 `TensorProto`; dtypes and field numbers are those of tensorboard's `tensor.proto`.


def tensor_scalar(data: bytes, begin: int, finish: int) -> tuple[int, float | None]:
    """Dtype of a tensor, and its number when it is one number of rank 0, else None.

    Raises `WireError` when the bytes are not a message.
    """
    dtype, rank, content = 0, 0, b""
    repeated: list[tuple[int, int, int, int]] = []
    for number, kind, start, end in fields(data, begin, finish):
        if number == 1 and kind == VARINT:
            dtype = varint(data, start)[0]
        elif number == 2 and kind == BYTES:
            rank += sum(1 for inner, _, _, _ in fields(data, start, end) if inner == 2)
        elif number == 4 and kind == BYTES:
            content = data[start:end]
        elif len(repeated) < 2:
            repeated.append((number, kind, start, end))
    if rank or dtype not in _FIELD:
        return dtype, None
    if content:
        return dtype, _from_content(dtype, content)
    own = [entry for entry in repeated if entry[0] == _FIELD[dtype]]
    return dtype, _from_field(dtype, data, *own[0][1:]) if len(own) == 1 else None


def _from_content(dtype: int, content: bytes) -> float | None:
    if dtype == _BFLOAT16:
        return _bfloat16(_WORD.unpack(content)[0]) if len(content) == 2 else None
    layout = _PACKED[dtype]
    return float(layout.unpack(content)[0]) if len(content) == layout.size else None


def _bfloat16(word: int) -> float:
    return _FLOAT.unpack(struct.pack("<I", (word & 0xFFFF) << 16))[0]


def _from_field(dtype: int, data: bytes, kind: int, start: int, end: int) -> float | None:
    """The value of a repeated field that holds exactly one, packed or not."""
    if dtype in (1, 2):
        size = 4 if dtype == 1 else 8
        wanted = kind in (BYTES, FIXED32 if dtype == 1 else FIXED64)
        return float(_PACKED[dtype].unpack_from(data, start)[0]) if wanted and end - start == size else None
    if kind not in (BYTES, VARINT) or start == end:
        return None
    value, after = varint(data, start)
    if after != end:
        return None
    if dtype in (_HALF, _BFLOAT16):
        word = value & 0xFFFF
        return _bfloat16(word) if dtype == _BFLOAT16 else float(struct.unpack("<e", _WORD.pack(word))[0])
    if dtype == 10:
        return float(bool(value))
    return float(value if dtype == 23 else signed(value))
