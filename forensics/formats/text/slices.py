"""A large log in slices: each is read as the log that it is a part of, and what the others need of it is handed on.

A slice begins at a line that is not near a traceback, a failure block or a broken message, so none crosses its begin.
Of the text before it, the head of the log and the megabyte before the slice are looked at: they tell the lines that a
restart prints again, which lines count restarts, and the step of lines that print none.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from msgspec import Struct

from forensics.dialects import handover
from forensics.dialects.events import elastic, tracebacks, wrapped
from forensics.dialects.handover import Handover
from forensics.errors import NotMine
from forensics.formats.rows.out import Out
from forensics.formats.text.log import FLOOD, log_of
from forensics.formats.text.sample import is_text
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.io.slices import Counted, Cutting, Slice, slices_of

_JOINTS = (tracebacks.HEAD, tracebacks.FORWARD, *elastic.NEEDLES, *wrapped.NEEDLES)
CUTTING = Cutting(tuple(joint.encode() for joint in _JOINTS), before_bytes=tracebacks.WINDOW_BYTES)


class Windows(Struct, frozen=True):
    """Bytes of the log's head, and before a slice, that are looked at."""

    head_bytes: int = 4 << 20
    before_bytes: int = 1 << 20


class Join(Struct, frozen=True):
    """A log put together: how rows of its slices change, and what is stated of the whole of it."""

    whole: handover.Joined

    @property
    def issues(self) -> tuple[tuple[str, str, int], ...]:
        """Code, message and count of what the whole log lost."""
        return tuple(("flood", f"{code}: {FLOOD}", count) for code, count in self.whole.left_out)

    def changes(self, number: int, table: str) -> bool:
        """Whether rows of a table change in a slice."""
        return self.whole.changes(number, table)

    def changed(self, number: int, table: str, rows: pl.DataFrame, first: int) -> pl.DataFrame:
        """Rows of a table in a slice, from row `first` on, put right."""
        return self.whole.changed(number, table, rows, first)


def cut(opened: Opened, counted: Counted, cutting: Cutting | None = None) -> tuple[Slice, ...]:
    """Cut a log in slices; none where it is read as one. Lines that are `counted` are not counted again.

    Raises `NotMine` for binary content and for program text.
    """
    if not is_text(opened):
        raise NotMine("not a text log")
    return slices_of(opened, cutting or CUTTING, counted)


def read(opened: Opened, out: Out, limits: Limits, part: Slice, windows: Windows | None = None) -> str:
    """Read one slice, and give as JSON what it hands over; raises `NotMine` for binary content and for program text."""
    import msgspec  # noqa: PLC0415 - only a run with a store needs it

    log = log_of(opened, out, limits, first_seq=part.lines_before + part.breaks_before)
    if part.number:
        log.warm(*_around(opened, part, windows or Windows()))
    log.take(opened.blocks_of(part.begin, part.end, part.lines_before + 1), out)
    log.close(out, is_last=part.is_last)
    log.settle(opened, out, part.lines_before)
    return msgspec.json.encode(log.handover()).decode()


def _around(opened: Opened, part: Slice, windows: Windows) -> tuple[bytes, bytes]:
    """Whole lines of the log's head, and before the slice."""
    head = opened.span(0, min(windows.head_bytes, part.begin)).removeprefix(b"\xef\xbb\xbf")
    head = head[: head.rfind(b"\n") + 1]
    low = max(part.begin - windows.before_bytes, len(head))
    before = opened.span(low, part.begin - low)
    return head, before if low == len(head) else before[before.find(b"\n") + 1 :]


def joined(states: Sequence[str]) -> Join | None:
    """Put the slices of a log together by what they handed over; None where it is to be read as one."""
    import msgspec  # noqa: PLC0415 - only a run with a store needs it

    try:
        parts = [msgspec.json.decode(state, type=Handover) for state in states]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    whole = handover.joined(parts)
    return None if whole is None else Join(whole)
