"""The plain route: records of the form that most writers use, matched one by one, without a message in between."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.formats.tfevents._points import Piece, Tags
from forensics.io.records.protobuf import signed, varint
from forensics.io.records.tfrecord import HEADER_BYTES, Frames

#: time, step, and one summary of one tagged float, all lengths below 128
_USUAL = re.compile(
    rb"\x09(.{8})(?:\x10([\x80-\xff]{0,8}[\x00-\x7f]))?\x2a([\x00-\x7f])\x0a([\x00-\x7f])\x0a([\x00-\x7f])(.*)\x15(.{4})\Z",
    re.DOTALL,
)


def decode_usual(frames: Frames, left: Sequence[int], tags: Tags) -> tuple[Piece, list[int]]:
    """Points of the frames of the usual form among those at the places `left`, and the places of all others."""
    import numpy as np  # noqa: PLC0415 - only runs with event files pay for it

    window, starts, lengths, match = frames.window, frames.starts, frames.lengths, _USUAL.match
    where: list[int] = []
    others: list[int] = []
    walls: list[bytes] = []
    numbers: list[bytes] = []
    steps: list[int] = []
    tagged: list[int] = []
    step_of: dict[bytes | None, int] = {None: 0}
    number_of: dict[bytes, int] = {}
    for k in left:
        begin = starts[k] + HEADER_BYTES
        found = match(window, begin, begin + lengths[k])
        if found is None:
            others.append(k)
            continue
        wall, raw_step, summary, value, size, tag, number = found.groups()
        if not size[0] + 7 == value[0] == summary[0] - 2 or len(tag) != size[0]:
            others.append(k)
            continue
        step = step_of.get(raw_step)
        if step is None:
            step = step_of[raw_step] = signed(varint(raw_step, 0)[0])
        tag_number = number_of.get(tag)
        if tag_number is None:
            tag_number = number_of[tag] = tags.number(tag.decode("utf-8", "replace"))
        where.append(k)
        walls.append(wall)
        steps.append(step)
        tagged.append(tag_number)
        numbers.append(number)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        values = np.frombuffer(b"".join(numbers), "<f4").astype(np.float64)
    piece = Piece(
        np.array(where, np.int64),
        np.array(tagged, np.int32),
        np.array(steps, np.int64),
        np.frombuffer(b"".join(walls), "<f8"),
        values,
    )
    return piece, others
