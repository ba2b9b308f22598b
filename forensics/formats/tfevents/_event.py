"""TensorBoard's `Event` message, as far as metrics need it: time, step, session marks, and the values of a summary.

Field numbers are those of tensorboard's `event.proto` and `summary.proto`. Graphs are passed over by their length.
A repeated occurrence of a single field replaces the earlier one, as the message classes do for scalars.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from forensics.formats.tfevents._tensor import tensor_scalar
from forensics.io.records.protobuf import BYTES, FIXED32, FIXED64, VARINT, WireError, fields, signed, varint

SESSION_START = 1
_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")
_STRING_TENSOR = 7


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a summary; `scalar` is None where it is something else, whose bytes `raw` a message class reads."""

    tag: str
    scalar: float | None
    plugin: str
    is_text: bool
    raw: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """One record; `wall_time` in unix seconds, `session` the status of a session mark, `summaries` byte ranges."""

    wall_time: float = 0.0
    step: int = 0
    file_version: str = ""
    session: int = 0
    summaries: tuple[tuple[int, int], ...] = ()


def parse_event(data: bytes) -> Event:
    """Read the outer fields of one payload.

    Raises:
        WireError: when the payload is not a message.
    """
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

    Raises:
        WireError: at the first value that is not a message; those before it have been given.
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
