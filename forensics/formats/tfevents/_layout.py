"""Where the numbers of one payload are: learned once from its wire format, then true of all that differ only there.

A layout exists for an event of a time, a step and scalar values; everything else is read field by field. Field numbers
are those of tensorboard's `event.proto`, `summary.proto` and `tensor.proto`.
"""

from __future__ import annotations

from msgspec import Struct

from forensics.io.records.crc32c import AFFINE_BYTES
from forensics.io.records.protobuf import BYTES, FIXED32, FIXED64, VARINT, WireError, fields, varint

#: a step of more bytes is negative or beyond 2**56; both are read field by field
_STEP_BYTES = 8
_WORD_BYTES = 8
_CRC_BYTES = 4
#: dtype → bytes of an element, and the field and wire type that repeats it
_TENSORS = {1: (4, 5, FIXED32), 2: (8, 6, FIXED64)}


class Place(Struct, frozen=True):
    """A float of `size_bytes` (4 or 8) at offset `at` of the payload, and the tag it belongs to."""

    tag: str
    at: int
    size_bytes: int


class Layout(Struct, frozen=True):
    """Offsets in a payload of `size_bytes`; `step_bytes` is 0 where the step is absent, so 0."""

    size_bytes: int
    wall: int
    step: int
    step_bytes: int
    places: tuple[Place, ...]

    def constant(self) -> bytes:
        """One mask byte for each byte of the payload: set bits are equal in all payloads of this layout."""
        mask = bytearray(b"\xff" * self.size_bytes)
        mask[self.wall : self.wall + _WORD_BYTES] = bytes(_WORD_BYTES)
        # the highest bit of a varint's byte says whether it goes on
        mask[self.step : self.step + self.step_bytes] = b"\x80" * self.step_bytes
        for place in self.places:
            mask[place.at : place.at + place.size_bytes] = bytes(place.size_bytes)
        return bytes(mask)

    def same_offsets(self, other: Layout) -> bool:
        """Whether the numbers of both are at the same offsets, whatever the tags are."""
        mine, its = ((o.size_bytes, o.wall, o.step, o.step_bytes) for o in (self, other))
        sizes = [[(p.at, p.size_bytes) for p in o.places] for o in (self, other)]
        return mine == its and sizes[0] == sizes[1]


def learn(data: bytes) -> Layout | None:
    """Layout of one payload; None when it is anything but time, step and scalars, each field once."""
    if len(data) > AFFINE_BYTES:
        return None
    try:
        found = {number: (kind, at, end) for number, kind, at, end in _once(data, 0, len(data))}
        if not {1, 5} <= set(found) <= {1, 2, 5} or found[1][0] != FIXED64 or found[5][0] != BYTES:
            return None
        step_kind, step, step_end = found.get(2, (VARINT, 0, 0))
        places = tuple(_place(data, *one) for one in _values(data, *found[5][1:]))
    except WireError:
        return None
    fits = step_end - step <= _STEP_BYTES and step + _WORD_BYTES <= len(data) + _CRC_BYTES
    if step_kind != VARINT or not fits or not places:
        return None
    return Layout(len(data), found[1][1], step, step_end - step, places)


def _once(data: bytes, begin: int, end: int) -> list[tuple[int, int, int, int]]:
    found = list(fields(data, begin, end))
    if len({number for number, _, _, _ in found}) < len(found):
        raise WireError("a field is repeated")
    return found


def _values(data: bytes, begin: int, end: int) -> list[tuple[int, int]]:
    found = list(fields(data, begin, end))
    if any(number != 1 or kind != BYTES for number, kind, _, _ in found):
        raise WireError("a summary of something else")
    return [(at, to) for _, _, at, to in found]


def _place(data: bytes, begin: int, end: int) -> Place:
    """The one float of a value; raises `WireError` when the value is anything else, so this is no layout."""
    tag, at, size = "", -1, 0
    for number, kind, start, to in _once(data, begin, end):
        if number == 1 and kind == BYTES:
            tag = data[start:to].decode("utf-8", "replace")
        elif number == 2 and kind == FIXED32 and at < 0:
            at, size = start, 4
        elif number == 8 and kind == BYTES and at < 0:
            at, size = _tensor(data, start, to)
        else:
            raise WireError("more than a tagged float")
    if at < 0:
        raise WireError("no float")
    return Place(tag, at, size)


def _tensor(data: bytes, begin: int, end: int) -> tuple[int, int]:
    """Offset and size of the float of a tensor of rank 0 whose fields occur once."""
    found = {number: (kind, at, to) for number, kind, at, to in _once(data, begin, end)}
    kind, at, _ = found.pop(1, (VARINT, -1, -1))
    dtype = varint(data, at)[0] if kind == VARINT and at >= 0 else 0
    size, repeated, alone = _TENSORS.get(dtype, (0, 0, 0))
    if found.pop(2, (BYTES, 0, 0))[1:] != (0, 0) and _has_shape(data, begin, end):
        raise WireError("a tensor of some rank")
    found.pop(3, None)
    if not size or len(found) != 1 or not set(found) <= {4, repeated}:
        raise WireError("another tensor")
    number, (kind, at, to) = found.popitem()
    if kind not in ((BYTES,) if number == 4 else (BYTES, alone)) or to - at != size:
        raise WireError("not one float")
    return at, size


def _has_shape(data: bytes, begin: int, end: int) -> bool:
    return any(number == 2 and (kind != BYTES or at < to) for number, kind, at, to in fields(data, begin, end))
