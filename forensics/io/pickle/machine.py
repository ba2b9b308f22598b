"""The state of a reader of pickled data, and its refusals: opcodes are read one by one, nothing is ever called."""

from __future__ import annotations

import mmap
from typing import Any, NoReturn

from msgspec import Struct

from forensics.errors import InputError

Buffer = bytes | mmap.mmap


class PickleRefused(InputError):  # noqa: N818 - named for what happened, as its kin are
    """The bytes hold something that is no plain data, or more of it than the bounds allow."""


class PickleCut(InputError):  # noqa: N818 - named for what happened, as its kin are
    """The bytes end before the document does."""


#: A value of this size or more is written between frames: `_Framer` of CPython's pickle.py, FRAME_SIZE_TARGET.
_UNFRAMED_BYTES = 64 << 10
_FRAME_OPCODE_BYTES = 9


class PickleBounds(Struct, frozen=True):
    """The bounds of a pickle. `nodes` counts containers and strings, `depth` open brackets, `stack` waiting values.

    `string_bytes` bounds one string, `integer_bytes` one integer. `frame_bytes` is far above the 64 KiB at which
    picklers close a frame.
    """

    nodes: int = 3_000_000
    depth: int = 12
    stack: int = 100_000
    string_bytes: int = 1 << 20
    integer_bytes: int = 16
    frame_bytes: int = 1 << 20


class Machine:
    """A place in the bytes, the stack of values, the open marks and the memo."""

    __slots__ = (
        "bounds",
        "buf",
        "damaged_texts",
        "done",
        "extra",
        "frame_end",
        "marks",
        "memo",
        "misframed",
        "nodes",
        "p",
        "size",
        "stack",
    )

    def __init__(self, buf: Buffer, bounds: PickleBounds, extra: Any = None) -> None:  # noqa: ANN401 - the caller's own
        """Begin at the first byte; `extra` is what the caller's own opcodes keep.

        `damaged_texts` counts strings whose bytes no pickler writes, `misframed` frames of another length than stated.
        """
        self.buf = buf
        self.size = len(buf)
        self.bounds = bounds
        self.extra = extra
        self.p = 0
        self.nodes = 0
        self.damaged_texts = self.misframed = self.frame_end = 0
        self.done = False
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []

    @property
    def flaws(self) -> tuple[tuple[str, str, int], ...]:
        """What was damaged and read all the same: the code, the words and the number of each kind that there is."""
        found = (
            ("frame-damaged", "frames of the pickle are not as long as they say", self.misframed),
            ("text-damaged", "texts that are no UTF-8; what they name is not found", self.damaged_texts),
        )
        return tuple(one for one in found if one[2])

    def refuse(self, why: str) -> NoReturn:
        """Give up; raises `PickleRefused` always."""
        msg = f"{why} at byte {max(self.p - 1, 0)}"
        raise PickleRefused(msg, help="forensics formats")

    def begin_frame(self, length: int) -> None:
        """Begin a frame of `length` bytes behind its opcode."""
        self.end_frame(self.p - _FRAME_OPCODE_BYTES)
        self.frame_end = self.p + length

    def end_frame(self, at: int) -> None:
        """Note a frame that does not end `at`: bytes are missing in it, or there are more than were written."""
        if self.frame_end and at != self.frame_end and at - self.frame_end < _UNFRAMED_BYTES:
            self.misframed += 1

    def take(self, count: int) -> bytes:
        """Give the next `count` bytes; raises `PickleCut` when there are fewer."""
        start, end = self.p, self.p + count
        if end > self.size:
            msg = f"the file ends at byte {self.size}, inside a value that began at byte {start - 1}"
            raise PickleCut(msg, help="forensics formats")
        self.p = end
        return self.buf[start:end]

    def count(self) -> None:
        """Account for one more container or string; raises `PickleRefused` above the bound."""
        self.nodes += 1
        if self.nodes > self.bounds.nodes:
            self.refuse(f"more than {self.bounds.nodes} objects")

    def push(self, value: Any) -> None:  # noqa: ANN401 - plain data of any kind
        """Put a value on the stack; raises `PickleRefused` when too many wait there."""
        self.stack.append(value)
        if len(self.stack) > self.bounds.stack:
            self.refuse(f"more than {self.bounds.stack} values wait for their container")

    def recall(self, index: int) -> Any:  # noqa: ANN401 - plain data of any kind
        """Give a value of the memo; raises `PickleRefused` when nothing was put there."""
        if index >= len(self.memo):
            self.refuse(f"memo entry {index} was never written")
        return self.memo[index]

    def above_mark(self) -> int:
        """Close the innermost mark and give its place on the stack.

        Raises `PickleRefused` when no mark is open, or it is no longer within the stack.
        """
        if not self.marks:
            self.refuse("a container ends that never began")
        mark = self.marks.pop()
        if not 0 < mark <= len(self.stack):
            self.refuse("a mark without a container")
        return mark

    def below(self) -> None:
        """Check that a value may be taken off without reaching under the innermost mark.

        Raises `PickleRefused` when it may not.
        """
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            self.refuse("a value is missing")
