"""Rows of a SQLite page: variable-length integers, and records as columns of null, int, float, text or bytes.

Layout: sqlite.org, "Database File Format", sections 1.6 and 2.1.
"""

from __future__ import annotations

import struct

from msgspec import Struct, field

Cell = None | int | float | str | bytes
_WIDTHS = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
_PLANS = 10_000
_FLOAT = struct.Struct(">d")
#: One column: where it begins and ends in the body of the record, and its serial type.
Slot = tuple[int, int, int]


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A signed integer of up to nine bytes, and where it ends; the end is -1 where the data ends in it."""
    if at < 0:
        return 0, -1
    value = 0
    for index in range(at, min(at + 8, len(data))):
        byte = data[index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, index + 1
    if at + 9 > len(data):
        return 0, -1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >> 63 else value, at + 9


def columns_in(page: bytes, at: int) -> int:
    """How many columns the row has whose cell begins at `at` of a leaf page, by its header."""
    _, at = varint(page, at)
    _, begin = varint(page, at)
    size, at = varint(page, begin)
    count = 0
    while 0 <= at < begin + size:
        _, at = varint(page, at)
        count += 1
    return count


class Plans(Struct):
    """Decodes records; the layout of each header is worked out once, because most rows have the same few.

    `places` are the wanted columns, -1 for one that the table has not.
    """

    places: tuple[int, ...]
    encoding: str
    _known: dict[bytes, tuple[int, tuple[Slot, ...]] | None] = field(
        default_factory=dict[bytes, "tuple[int, tuple[Slot, ...]] | None"]
    )

    def cells(self, payload: bytes) -> tuple[Cell, ...] | None:
        """The wanted cells of a record, or None where it is damaged."""
        size, _ = varint(payload, 0)
        if not 1 <= size <= len(payload):
            return None
        header = payload[:size]
        if header in self._known:
            plan = self._known[header]
        else:
            plan = _plan(header, self.places)
            if len(self._known) < _PLANS:
                self._known[header] = plan
        if plan is None or size + plan[0] > len(payload):
            return None
        return tuple([_cell(payload, size, slot, self.encoding) for slot in plan[1]])


def _plan(header: bytes, places: tuple[int, ...]) -> tuple[int, tuple[Slot, ...]] | None:
    """Length of the body, and the slots of the wanted columns; None for a header that no writer makes."""
    _, at = varint(header, 0)
    slots: list[Slot] = []
    end = 0
    while 0 <= at < len(header):
        kind, at = varint(header, at)
        if kind < 0 or kind in (10, 11):
            return None
        begin, end = end, end + (_WIDTHS[kind] if kind < 12 else (kind - 12) // 2)
        slots.append((begin, end, kind))
    if at < 0:
        return None
    return end, tuple(slots[place] if 0 <= place < len(slots) else (0, 0, 0) for place in places)


def _cell(payload: bytes, base: int, slot: Slot, encoding: str) -> Cell:
    begin, end, kind = slot
    if kind == 0:
        return None
    if kind in (8, 9):
        return kind - 8
    part = payload[base + begin : base + end]
    if kind < 7:
        return int.from_bytes(part, "big", signed=True)
    if kind == 7:
        value: float = _FLOAT.unpack(part)[0]
        return value
    return part.decode(encoding, "replace") if kind % 2 else part
