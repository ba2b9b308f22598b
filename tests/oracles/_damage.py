"""Damage that disks, networks and killed writers do to a file, drawn at random."""

from __future__ import annotations

import random
from typing import NamedTuple


class Damage(NamedTuple):
    """What became of the bytes; `width` is how many of the file it touches, from `at` on."""

    data: bytes
    kind: str
    at: int
    width: int


def damaged(data: bytes, seed: int) -> Damage:
    """The same bytes with one place flipped, zeroed, missing, repeated, overwritten or cut off."""
    rng = random.Random(seed)
    kind = rng.choice(["flip", "zero", "delete", "repeat", "structure", "cut"])
    at, width = rng.randrange(len(data)), rng.choice([1, 3, 40, 400])
    if kind in ("flip", "structure"):
        width = 1
    before, touched, behind = data[:at], data[at : at + width], data[at + width :]
    middle = {
        "flip": bytes([touched[0] ^ (1 << rng.randrange(8))]),
        "zero": bytes(len(touched)),
        "delete": b"",
        "repeat": touched * 2,
        "structure": bytes([rng.choice(b'[]{},:"\\')]),
    }
    return Damage(before if kind == "cut" else before + middle[kind] + behind, kind, at, width)
