"""Frames of Python stacks as text, and which of them is the user's own: the place where a run's code called in."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from forensics.io.tolerant_json import dumps
from forensics.knowledge.libraries import is_library

#: Frames of one stack that are kept.
MOST_FRAMES = 40
_PART_CHARS = 300


class Frame(Struct, frozen=True):
    """One frame: its function, its file as printed, and its line (None where it has none)."""

    function: str
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        """Render as `file:line function`."""
        place = f"{self.file}:{self.line}" if self.line is not None else self.file
        return f"{place[-_PART_CHARS:]} {self.function[:_PART_CHARS]}".strip()


def site_of(frames: Sequence[Frame]) -> str | None:
    """The innermost frame of the user's own code, frames given innermost first; the innermost of all where none is."""
    if not frames:
        return None
    return str(next((frame for frame in frames if not is_library(frame.file)), frames[0]))


def stack_json(frames: Sequence[Frame]) -> str | None:
    """The stack as a JSON list, innermost first."""
    return dumps([str(frame) for frame in frames[:MOST_FRAMES]], compact=True).decode() if frames else None
