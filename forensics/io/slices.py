"""Parts of one large text that are read by themselves: where they may begin, and what precedes each.

A slice begins behind a newline. Its place depends on the content of the file alone, so every reader cuts the same file
in the same slices, however many of them share the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from forensics.errors import InputError
from forensics.io.blocks import count_lines
from forensics.io.reading import Opened

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BREAKS = (b"\r", b"\x08")
_COUNTED_BYTES = 8 << 20
#: Rows of a box are one record, whose step may be in any of them, and so are the lines of an object that is indented;
#: so far before a place its begin is looked for.
_ROWS, _BOX_BYTES = (b"|", b" ", b"\t", b"}", b"]"), 64 << 10
#: About so many bytes are one slice.
SLICE_BYTES = 128 << 20
#: So many places are tried for the begin of a slice, each so far before the one that comes next.
_TRIES = 16


class Slice(Struct, frozen=True):
    """Bytes `begin` to `end` of a source, number `number` of `count`; the part of the source before it.

    `lines_before` counts newlines, `breaks_before` carriage returns and backspaces, which end segments, too.
    """

    number: int
    count: int
    begin: int
    end: int
    lines_before: int
    breaks_before: int

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return self.end - self.begin

    @property
    def is_last(self) -> bool:
        """Whether the source ends with it."""
        return self.number == self.count - 1


class Cutting(Struct, frozen=True):
    """How a text is cut: about every `step_bytes`, where none of `joints` is near.

    A joint is a literal whose line is read together with others: no slice begins within `before_bytes` behind one, nor
    within `after_bytes` before one.
    """

    joints: tuple[bytes, ...] = ()
    step_bytes: int = SLICE_BYTES
    before_bytes: int = 64 << 10
    after_bytes: int = 8 << 10
    line_bytes: int = 1 << 20


#: How many newlines, and other breaks, precede some bytes of a source: as its slices, read before, say.
Counted = Mapping[int, tuple[int, int]]


def slices_of(opened: Opened, cutting: Cutting, counted: Counted) -> tuple[Slice, ...]:
    """Cut a text; none where it is short, compressed, UTF-16, has holes or cannot be read.

    Lines are counted only where `counted` does not know them.
    """
    if opened.size_bytes <= cutting.step_bytes or opened.compression or opened.head(2) in _UTF16:
        return ()
    try:
        begins = [0]
        for near in range(cutting.step_bytes, opened.size_bytes, cutting.step_bytes):
            if (begin := _begin(opened, near, cutting)) > begins[-1]:
                begins.append(begin)
        return _counted(opened, begins, counted) if len(begins) > 1 else ()
    except InputError:
        return ()


def _begin(opened: Opened, near: int, cutting: Cutting) -> int:
    """A place before `near` at which a slice may begin; 0 without one."""
    for _ in range(_TRIES):
        low = max(near - cutting.line_bytes, 0)
        at = low + _last_line(opened.span(low, near - low + 1))
        if at == low:
            return 0
        around = opened.span(max(at - cutting.before_bytes, 0), min(cutting.before_bytes, at) + cutting.after_bytes)
        if not any(joint in around for joint in cutting.joints):
            return at
        near = at - max(cutting.before_bytes, 1)
        if near <= 0:
            return 0
    return 0


def _last_line(data: bytes) -> int:
    """Where the last line begins that begins a record, else the last one; the last byte is one behind the place."""
    last = at = data.rfind(b"\n", 0, -1) + 1
    while at and last - at < _BOX_BYTES and data.startswith(_ROWS, at):
        at = data.rfind(b"\n", 0, at - 1) + 1
    return at if at and not data.startswith(_ROWS, at) else last


def _counted(opened: Opened, begins: Sequence[int], counted: Counted) -> tuple[Slice, ...]:
    """Slices with these begins, each with what precedes it; none where the file has a hole or ends early."""
    found: list[Slice] = []
    lines = breaks = 0
    for number, (begin, end) in enumerate(zip(begins, (*begins[1:], opened.size_bytes), strict=True)):
        found.append(Slice(number, len(begins), begin, end, lines, breaks))
        if end in counted:
            lines, breaks = counted[end]
            continue
        for at in range(begin, end if number < len(begins) - 1 else begin, _COUNTED_BYTES):
            data = opened.span(at, min(_COUNTED_BYTES, end - at))
            if opened.next_data(at) > at or len(data) < min(_COUNTED_BYTES, end - at):
                return ()
            lines += count_lines(data)
            breaks += sum(data.count(one) for one in _BREAKS if one in data)
    return tuple(found)
