"""Checks the claims of a Parquet file page by page before a trusting decoder reads it.

A decoder allocates what the headers claim, so a few bytes can ask for all memory. Here the footer and the header of
every page are read (Thrift's compact protocol, of the format's specification), and columns whose claims contradict each
other, or pass the bounds, are left out.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct

from forensics.errors import InputError, LimitExceeded
from forensics.io.limits import DEFAULT, Limits
from forensics.io.tolerant_json import as_list

MAGIC = b"PAR1"
_FOOTER_BYTES = 64 << 20
_HEADER_BYTES = 64 << 10
_PAGE_BYTES = 64 << 20
_DEPTH = 24
_VALUES = 2_000_000
_FREE_CELLS = 1 << 20
_TYPES = ("boolean", "int32", "int64", "int96", "float", "double", "bytes", "fixed")
_DATA, _DATA_V2 = 0, 3
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12

Fields = dict[int, Any]


class Column(Struct, frozen=True):
    """A flat column that can be decoded, and its physical type (`double`, `int64`, `bytes`, ...)."""

    name: str
    kind: str


class Shape(Struct, frozen=True):
    """Rows of the file, the columns that are sound, and the names of the others with the reason."""

    rows: int
    columns: tuple[Column, ...]
    refused: tuple[tuple[str, str], ...]


class _Thrift:
    """A reader of compact Thrift structs: every size is checked against the bytes that are there."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end
        self.left = _VALUES

    def varint(self) -> int:
        result = shift = 0
        while self.at < self.end and shift < 70:
            byte = self.data[self.at]
            self.at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7
        raise InputError("a number in a Parquet header does not end")

    def signed(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        size = self.varint()
        if size > self.end - self.at:
            raise InputError("a text in a Parquet header is longer than the header")
        self.at += size
        return self.data[self.at - size : self.at]

    def struct(self, depth: int = 0) -> Fields:
        found: Fields = {}
        number = 0
        while (head := self._byte()) != _STOP:
            number = number + (head >> 4) if head >> 4 else self.signed()
            kind = head & 15
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return found

    def _byte(self) -> int:
        self.left -= 1
        if self.at >= self.end or self.left < 0:
            raise InputError("a Parquet header is cut or too large")
        self.at += 1
        return self.data[self.at - 1]

    def _value(self, kind: int, depth: int) -> object:
        if depth > _DEPTH:
            raise InputError("a Parquet header is nested too deep")
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind < _DOUBLE:
            return self.signed()
        if kind == _BINARY:
            return self.binary()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _DOUBLE and self.end - self.at >= 8:
            self.at += 8
            return None
        raise InputError("a Parquet header holds an unknown type")

    def _list(self, depth: int) -> list[object]:
        head = self._byte()
        size = self.varint() if head >> 4 == 15 else head >> 4
        if size > self.end - self.at:
            raise InputError("a list in a Parquet header is longer than the header")
        self.left -= size
        return [self._value(head & 15, depth + 1) for _ in range(size)]


def shape_of(data: bytes, limits: Limits = DEFAULT) -> Shape:
    """Read the footer and the page headers of a whole file in memory.

    Raises `InputError` when it is no Parquet file, or its footer is damaged; `LimitExceeded` when it claims far more
    cells than its size can hold (`limits.expanded_ratio`).
    """
    size = int.from_bytes(data[-8:-4], "little")
    if len(data) < 12 or data[:4] != MAGIC or data[-4:] != MAGIC or size > min(len(data) - 12, _FOOTER_BYTES):
        raise InputError("the footer of the Parquet file is missing: it was not closed, or is cut")
    footer = _Thrift(data, len(data) - 8 - size, len(data) - 8).struct()
    rows = _int(footer, 3)
    groups = _structs(footer, 4)
    names = list(_flat(_structs(footer, 2)))
    if rows < 0 or sum(_int(group, 3) for group in groups) != rows or any(_int(group, 3) < 0 for group in groups):
        raise InputError("the row groups of the Parquet file do not add up")
    most = max(_FREE_CELLS, len(data) * limits.expanded_ratio // 8)
    if rows * max(len(names), 1) > most:
        raise LimitExceeded("cells of a Parquet file", limit=most, actual=rows * len(names))
    refused: dict[str, str] = {}
    for group in groups:
        for path, why in _faults(data, group, len(data) - 8 - size):
            refused.setdefault(path, why)
    sound = tuple(Column(name, kind) for name, kind in names if name not in refused)
    return Shape(rows, sound, tuple(refused.items()))


def _int(struct: Fields, number: int) -> int:
    found = struct.get(number)
    return found if isinstance(found, int) else 0


def _structs(struct: Fields, number: int) -> list[Fields]:
    return [cast("Fields", item) for item in as_list(struct.get(number)) if isinstance(item, dict)]


def _flat(schema: list[Fields]) -> Iterator[tuple[str, str]]:
    """Top-level columns that are one number or one text in each row; nested and repeated ones are left out."""
    at = 1
    while at < len(schema):
        element = schema[at]
        name, kind, children = element.get(4), element.get(1), _int(element, 5)
        if isinstance(name, bytes) and isinstance(kind, int) and not children and _int(element, 3) < 2:
            yield name.decode("utf-8", "replace"), _TYPES[kind] if 0 <= kind < len(_TYPES) else "unknown"
        at = _after(schema, at)


def _after(schema: list[Fields], at: int) -> int:
    """Index behind an element and all below it; the elements stand in depth-first order."""
    open_elements = 1
    while open_elements and at < len(schema):
        open_elements += max(_int(schema[at], 5), 0) - 1
        at += 1
    return at


def _faults(data: bytes, group: Fields, end: int) -> Iterator[tuple[str, str]]:
    rows = _int(group, 3)
    for chunk in _structs(group, 1):
        meta = chunk.get(3)
        path = cast("Fields", meta).get(3) if isinstance(meta, dict) else None
        parts = as_list(path)
        name = ".".join(part.decode("utf-8", "replace") for part in parts if isinstance(part, bytes))
        if not isinstance(meta, dict) or 1 in chunk:
            yield name, "its values stand in another file"
        elif len(parts) == 1:
            try:
                _check(data, cast("Fields", meta), rows, end)
            except InputError as error:
                yield name, error.message


def _check(data: bytes, meta: Fields, rows: int, end: int) -> None:
    """Walk the pages of one column chunk.

    Raises `InputError` when they contradict the footer, each other or the bounds.
    """
    at = min(offset for offset in (_int(meta, 9), _int(meta, 11)) if offset > 0) if _int(meta, 9) > 0 else 0
    stop = at + _int(meta, 7)
    if not 4 <= at <= stop <= end or _int(meta, 5) != rows:
        raise InputError("its place in the file is not sound")
    values = 0
    while at < stop and values < rows:
        thrift = _Thrift(data, at, min(stop, at + _HEADER_BYTES))
        page = thrift.struct()
        kind, plain, packed = _int(page, 1), _int(page, 2), _int(page, 3)
        if not (0 <= packed <= stop - thrift.at and 0 <= plain <= _PAGE_BYTES) or (
            _int(meta, 4) == 0 and plain != packed
        ):
            raise InputError("a page is larger than its place or the bounds")
        checksum = page.get(4)
        if isinstance(checksum, int) and zlib.crc32(data[thrift.at : thrift.at + packed]) != checksum & 0xFFFFFFFF:
            raise InputError("the checksum of a page does not hold")
        head = page.get({_DATA: 5, _DATA_V2: 8}.get(kind, 7))
        count = _int(cast("Fields", head), 1) if isinstance(head, dict) else 0
        if not 0 <= count <= max(rows, plain):
            raise InputError("a page claims more values than there are rows")
        values += count if kind in (_DATA, _DATA_V2) else 0
        at = thrift.at + packed
    if values != rows:
        raise InputError("its pages do not hold one value for each row")
