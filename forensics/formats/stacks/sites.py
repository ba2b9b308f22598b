"""Frames of Python stacks as text, and which of them is the user's own: the place where a run's code called in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from forensics.io.tolerant_json import dumps

#: Frames of one stack that are kept.
MOST_FRAMES = 40
_PART_CHARS = 300
#: Code that a run does not own: the standard library, installed packages, frozen and generated code.
_LIBRARY = re.compile(
    r"(?:^|[\\/])(?:site-packages|dist-packages)[\\/]|[\\/]lib(?:64)?[\\/]python\d|^(?:torch|numpy|multiprocessing"
    r"|concurrent|asyncio|importlib|deepspeed|accelerate|transformers|lightning|pytorch_lightning|megatron)[\\/]"
    r"|^<(?:frozen|string|eval|__array)|^(?:threading|runpy|queue|selectors|socket|subprocess|contextlib|functools)\.py$"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: its function, its file as printed, and its line (None where it has none)."""

    function: str
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        """Render as `file:line function`."""
        place = f"{self.file}:{self.line}" if self.line is not None else self.file
        return f"{place[-_PART_CHARS:]} {self.function[:_PART_CHARS]}".strip()


def is_library(frame: Frame) -> bool:
    """Whether the frame is of the interpreter or of an installed package."""
    return not frame.file or _LIBRARY.search(frame.file) is not None


def site_of(frames: Sequence[Frame]) -> str | None:
    """The innermost frame of the user's own code, frames given innermost first; the innermost of all where none is."""
    if not frames:
        return None
    return str(next((frame for frame in frames if not is_library(frame)), frames[0]))


def stack_json(frames: Sequence[Frame]) -> str | None:
    """The stack as a JSON list, innermost first."""
    return dumps([str(frame) for frame in frames[:MOST_FRAMES]], compact=True).decode() if frames else None
