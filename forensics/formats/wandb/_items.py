"""Key and JSON value of the items of history, config and summary records of a W&B transaction log."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Union

from forensics.errors import InputError
from forensics.formats.rows.json_records import flat as joined
from forensics.formats.rows.json_records import is_media, number
from forensics.io.records.protobuf import BYTES, FIXED64, VARINT, fields, signed, varint
from forensics.io.tolerant_json import loads
from forensics.patterns import lazily

_KEY, _NESTED_KEY, _VALUE = 1, 2, 16
_NUMBER = lazily(rb"-?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|Infinity)\Z|NaN\Z")
_VALUE_TAG = b"\x82\x01"
_NESTING = 4
#: Of one nested value: cells, and characters of their joined names (names of 400 characters reach both at once).
_NESTED_CELLS, _NESTED_CHARS = 10_000, 4 << 20

#: Names of the fields of a message by their numbers, those of messages within it as tables of their own.
Names = Mapping[int, Union[str, "Names"]]
Leaf = str | int | float
_FLOAT64 = struct.Struct("<d")


def leaves(data: bytes, at: int, end: int, names: Names) -> Iterator[tuple[str, Leaf]]:
    """Name and value of the fields between two offsets that have a name, as they come: text, integer or double.

    Raises `WireError` when the bytes are no such message.
    """
    for number_, kind, start, stop in fields(data, at, end):
        name = names.get(number_)
        if isinstance(name, str):
            if kind == BYTES:
                yield name, data[start:stop].decode("utf-8", "replace")
            elif kind == VARINT:
                yield name, signed(varint(data, start)[0])
            elif kind == FIXED64:
                yield name, _FLOAT64.unpack_from(data, start)[0]
        elif name is not None and kind == BYTES:
            yield from leaves(data, start, stop, name)


def parts(data: bytes, at: int, end: int, number_: int) -> Iterator[tuple[int, int]]:
    """Where each message under one field begins and ends; raises `WireError` when the bytes are no such message."""
    return ((start, stop) for n, kind, start, stop in fields(data, at, end) if n == number_ and kind == BYTES)


def items(data: bytes, at: int, end: int, field: int = 1) -> Iterator[tuple[bytes, bytes]]:
    """Key (parts joined with a dot) and JSON text of each item under `field` between two offsets.

    Raises `WireError` when the bytes are no such message.
    """
    tag = field << 3 | BYTES
    while at < end:
        found = _short(data, at, end, tag)
        if found is None:
            break
        key, value, at = found
        yield key, value
    for number_, kind, start, stop in fields(data, at, end):
        if number_ == field and kind == BYTES:
            yield _item(data, start, stop)


def _short(data: bytes, at: int, end: int, tag: int) -> tuple[bytes, bytes, int] | None:
    """The form of nearly all items (one key, all lengths below 128), read without a loop; None for any other."""
    if end - at < 7 or data[at] != tag or data[at + 1] > 127:
        return None
    stop = at + 2 + data[at + 1]
    name_end = at + 4 + data[at + 3]
    if stop > end or data[at + 2] not in {10, 18} or data[at + 3] > 127 or name_end + 3 > stop:
        return None
    if data[name_end : name_end + 2] != _VALUE_TAG or name_end + 3 + data[name_end + 2] != stop:
        return None
    return data[at + 4 : name_end], data[name_end + 3 : stop], stop


def _item(data: bytes, at: int, end: int) -> tuple[bytes, bytes]:
    parts: list[bytes] = []
    value = b""
    for field, kind, start, stop in fields(data, at, end):
        if kind != BYTES:
            continue
        if field in {_KEY, _NESTED_KEY}:
            parts.append(data[start:stop])
        elif field == _VALUE:
            value = data[start:stop]
    return b".".join(parts), value


def plain_number(value: bytes) -> float | None:
    """A JSON text that is a number, `NaN` or an infinity; None for everything else."""
    return float(value) if len(value) < 400 and _NUMBER.match(value) else None


def numbers_of(name: str, value: bytes) -> Iterator[tuple[str, float | None]]:
    """Numbers in a JSON text: itself, a string that prints one, null, or those of a plain object, joined with dots."""
    if (known := plain_number(value)) is not None:
        yield name, known
        return
    if value[:1] not in {b'"', b"{", b"n"}:
        return
    try:
        document = loads(value)
    except InputError:
        return
    for key, cell in flat(name, document):
        if cell is None or number(cell) is not None:
            yield key, number(cell)


def flat(name: str, document: object) -> Iterator[tuple[str, object]]:
    """Leaves of a document with dotted names; an object with `_type` is a media value and has none."""
    cells, chars = _NESTED_CELLS, _NESTED_CHARS
    for key, cell in joined({name: document}, ".", _NESTING, is_media):
        cells, chars = cells - 1, chars - len(key)
        if cells < 0 or chars < 0:
            return
        yield key, cell
