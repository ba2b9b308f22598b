"""The template route: frames of one length that are equal but for their numbers are decoded together, in any order.

Frames are grouped by length, then by all bytes that a layout calls constant; one frame of each group is parsed, which
tells its tags. The frames come with verified checksums. Whatever does not fit is left for the reader of single records.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from forensics.formats.tfevents._layout import Layout, learn
from forensics.formats.tfevents._points import Piece, Tags
from forensics.io.records.crc32c import AFFINE_BYTES
from forensics.io.records.tfrecord import HEADER_BYTES, Frames

#: fewer frames of one length are read faster one by one
_FEW = 48
#: layouts tried among the frames of one length
_TRIES = 16
_KNOWN = 100_000
#: odd, so multiplying loses nothing; what it maps together is compared byte by byte
_MIX = 0x9E3779B97F4A7C15


class Templates(Struct):
    """Layouts learned so far, by length and constant bytes."""

    tags: Tags
    known: dict[tuple[int, bytes], Layout | None] = field(default_factory=dict[tuple[int, bytes], Layout | None])

    def layout(self, constant: bytes, payload: bytes) -> Layout | None:
        """Layout of a payload, remembered by its constant bytes."""
        key = (len(payload), constant)
        if key not in self.known:
            if len(self.known) >= _KNOWN:
                self.known.clear()
            self.known[key] = learn(payload)
        return self.known[key]


def decode(frames: Frames, templates: Templates) -> tuple[list[Piece], list[int]]:
    """Points of the frames that share layouts, and the places of the frames that are left, rising."""
    if len(frames.starts) < _FEW:
        return [], list(range(len(frames.starts)))
    lengths = np.array(frames.lengths, np.int64)
    begins = np.array(frames.starts, np.int64) + HEADER_BYTES
    window = np.frombuffer(frames.window, np.uint8)
    left = np.ones(len(lengths), bool)
    pieces: list[Piece] = []
    order = np.argsort(lengths, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        length = int(lengths[group[0]])
        width = length + -length % 8
        group = group[begins[group] + width <= len(window)]  # noqa: PLW2901 - those that fit are the group
        if len(group) < _FEW or not 0 < length <= AFFINE_BYTES:
            continue
        rows = np.lib.stride_tricks.sliding_window_view(window, width)[begins[group]]
        for piece, done in _alike(rows, length, templates):
            pieces.append(Piece(group[piece.frame], piece.tags, piece.step, piece.wall, piece.value))
            left[group[done]] = False
    remaining: list[int] = np.flatnonzero(left).tolist()
    return pieces, remaining


def _alike(rows: NDArray[np.uint8], length: int, templates: Templates) -> Iterator[tuple[Piece, NDArray[np.int64]]]:
    """Pieces of payloads of one length, zero-padded to whole words, and the rows that each piece is made of."""
    rest = np.arange(len(rows))
    for _ in range(_TRIES):
        if len(rest) < _FEW:
            return
        layout = learn(rows[rest[0], :length].tobytes())
        if layout is None:
            rest = rest[1:]
            continue
        chosen = rows[rest]
        constant: NDArray[np.uint64] = chosen.view(np.uint64) & np.frombuffer(
            layout.constant().ljust(rows.shape[1], b"\0"), np.uint64
        )
        first, kind = _kinds(constant)
        found = [templates.layout(constant[k].tobytes(), chosen[k, :length].tobytes()) for k in first.tolist()]
        fits = np.array([one is not None and one.same_offsets(layout) for one in found])
        taken = fits[kind] & (constant == constant[first[kind]]).all(axis=1)
        numbers = np.array([_numbers(one, layout, templates.tags) for one in found], np.int32)
        yield _piece(chosen[taken], rest[taken], layout, numbers[kind[taken]]), rest[taken]
        rest = rest[~taken]


def _numbers(found: Layout | None, layout: Layout, tags: Tags) -> list[int]:
    if found is None or not found.same_offsets(layout):
        return [-1] * len(layout.places)
    return [tags.number(place.tag) for place in found.places]


def _kinds(constant: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First row of each kind of rows, and the kind of each row; different rows may rarely be given the same kind."""
    key = constant[:, 0].copy()
    for column in constant.T[1:]:
        key *= np.uint64(_MIX)
        key ^= key >> np.uint64(29)
        key ^= column
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    return first, kind


def _piece(rows: NDArray[np.uint8], where: NDArray[np.int64], layout: Layout, numbers: NDArray[np.int32]) -> Piece:
    wall = np.ascontiguousarray(rows[:, layout.wall : layout.wall + 8]).view("<f8")[:, 0]
    step = np.zeros(len(rows), np.int64)
    for k in range(layout.step_bytes):
        step |= (rows[:, layout.step + k].astype(np.int64) & 127) << 7 * k
    value = np.zeros((len(rows), len(layout.places)), np.float64)
    for k, place in enumerate(layout.places):
        held = np.ascontiguousarray(rows[:, place.at : place.at + place.size_bytes])
        value[:, k] = held.view(f"<f{place.size_bytes}")[:, 0]
    times = len(layout.places)
    return Piece(
        np.repeat(where, times), numbers.ravel(), np.repeat(step, times), np.repeat(wall, times), value.ravel()
    )
