"""Stacks of a memory snapshot, each kept once: a list of frames becomes a small number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from forensics.io.budget import Budget

FrameKey = tuple[str, int, str, str | None, str | None, str | None]
#: Units of one frame: its key takes 1.2 µs.
_FRAME_UNITS = 8
#: Units of one frame in a stack that another begins: it is copied, and becomes a row of 48 bytes.
_MEMBER_UNITS = 4
_FX = ("fx_node_op", "fx_node_name", "fx_original_trace")


class StackRef:
    """What is left of a list of frames: the number of its stack."""

    __slots__ = ("stack",)

    def __init__(self, stack: int) -> None:
        """Keep the number."""
        self.stack = stack


class StackBook:
    """Frames and stacks by number, in the order in which they were met; stack 0 is the empty one.

    Many stacks can share few frames, so each frame of a list is charged wherever it is met.
    """

    def __init__(self, budget: Budget) -> None:
        """Start with the empty stack."""
        self.budget = budget
        self._members: list[tuple[int, ...]] = [()]
        self.frames: dict[FrameKey, int] = {}
        self.stacks: dict[tuple[int, ...], int] = {(): 0}
        self.malformed = 0

    def number(self, frames: Sequence[Any]) -> int:
        """Give the number of a list of frames, innermost first; what is no frame counts as malformed."""
        self.budget.charge(_FRAME_UNITS * len(frames))
        known = self.frames
        keys = [key for one in frames if (key := self._key(one)) is not None]
        return self._numbered(tuple(known.setdefault(key, len(known)) for key in keys))

    def _numbered(self, members: tuple[int, ...]) -> int:
        number = self.stacks.setdefault(members, len(self._members))
        if number == len(self._members):
            self._members.append(members)
        return number

    def joined(self, inner: int, outer: int) -> int:
        """Give the number of a stack that goes on with the frames of another."""
        members = self._members[inner] + self._members[outer]
        self.budget.charge(_MEMBER_UNITS * len(members))
        return self._numbered(members)

    def of(self, value: object) -> int | None:
        """Give the number of what an event or a block has as `frames`; None when it has none."""
        if isinstance(value, StackRef):
            return value.stack
        if isinstance(value, list):
            return self.number(cast("list[object]", value))
        return None

    def _key(self, frame: object) -> FrameKey | None:
        if is_frame(frame):
            one = cast("dict[str, object]", frame)
            line = one.get("line")
            number = line if isinstance(line, int) and abs(line) < 1 << 62 else 0
            op, name, trace = (_text(one.get(key)) for key in _FX)
            return str(one["filename"]), number, _text(one.get("name")) or "", op, name, trace
        self.malformed += 1
        return None

    def columns(self) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """Give the tables `frames` and `stacks` as columns."""
        keys = list(self.frames)
        names = ("file", "line", "function", *_FX)
        frames: dict[str, list[Any]] = {"frame": list(range(len(keys)))}
        frames |= {name: [key[i] for key in keys] for i, name in enumerate(names)}
        stacks: dict[str, list[Any]] = {"stack": [], "depth": [], "frame": []}
        for members, stack in self.stacks.items():
            stacks["stack"] += [stack] * len(members)
            stacks["depth"] += range(len(members))
            stacks["frame"] += members
        return frames, stacks


def is_frame(value: object) -> bool:
    """Whether a value looks like a frame: a dict with a file name."""
    return value.__class__ is dict and isinstance(cast("dict[str, object]", value).get("filename"), str)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
