"""Stacks of threads as text: py-spy, pystack, faulthandler, gdb's `thread apply all bt`, `/proc/<pid>/stack`.

One file may hold several processes, or the sections of several ranks as the debug server of torch.distributed writes
them; a rank that gave no answer, or whose process py-spy could not find, is an event. Locals and source text are
passed over. A log in which stacks stand among other lines is no dump.
"""

from __future__ import annotations

import re

from forensics.errors import NotMine
from forensics.formats.rows.out import Out
from forensics.formats.rows.text import lines_of, settle
from forensics.formats.stacks._lines import Reader
from forensics.formats.stacks._rows import StackRows
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.registry import Sniff, ingester

_MAGICS = (
    *(b"Process ", b"Traceback for thread ", b"=== Rank ", b"PARTIAL DATA: ", b"Thread 0x", b"Current thread 0x"),
    *(b"Thread ", b"[New LWP ", b"Timeout (", b"[<"),
)
_GLOBS = (
    *("*pyspy*", "*py-spy*", "*py_spy*", "*pystack*", "*stack*", "*faulthandler*", "*traceback*", "*backtrace*"),
    *("*gdb*", "*hang*dump*", "*thread*dump*"),
)
#: A process that py-spy could look into, and in which it found no thread.
_NO_THREAD = re.compile(rb"Process \d+: [^\n]*\nPython v\d")
_HEAD_BYTES = 64 << 10
#: Share of the first lines that must belong to a dump: what is less is a log with a stack in it.
_LEAST_SHARE = 0.6


@ingester(
    "stack_dump",
    version=1,
    sniff=Sniff(glob=_GLOBS, magic=_MAGICS),
    emits=("stack_frames", "events"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one dump.

    Raises:
        NotMine: when no thread stands in its first lines, or most of them are others.
    """
    if not _is_dump(opened.text_head(_HEAD_BYTES), opened.source.path.rsplit("/", 1)[-1].lower()):
        raise NotMine("no stacks")
    rows = StackRows(out, limits.batch_rows)
    reader = Reader(rows, rank=opened.source.rank)
    lost_bytes = lost_lines = 0
    first: int | None = None
    for line in lines_of(opened):
        if not reader.feed(line.text.decode("utf-8", "replace"), line.number):
            lost_bytes += len(line.text)
            lost_lines += 1
            first = line.number if first is None else first
    reader.close()
    rows.close()
    out.format("+".join(sorted(reader.tools or {})) or "no process")
    if lost_lines:
        out.issue("strange-line", "lines that belong to no stack", line=first, count=lost_lines)
    settle(opened, out, records=rows.threads, lost_bytes=lost_bytes, reason="lines that belong to no stack")


class _Nowhere:
    """A sink that keeps nothing: the head is only looked at."""

    def rows(self, table: str, columns: object) -> None:
        """Drop them."""

    def issue(self, code: str, message: str, *, byte: int = 0, line: int | None = None, count: int = 1) -> None:
        """Drop it."""

    def account(self, *, read_bytes: int = 0, skipped_bytes: int = 0, reason: str = "", records: int = 0) -> None:
        """Drop it."""

    def format(self, name: str) -> None:
        """Drop it."""


def _is_dump(head: bytes, name: str) -> bool:
    reader = Reader(StackRows(_Nowhere()))
    for number, line in enumerate(head.splitlines(), start=1):
        reader.feed(line.decode("utf-8", "replace"), number)
    if reader.failed:
        return "spy" in name or b"py_spy::" in head
    return bool(reader.tools or _NO_THREAD.match(head)) and reader.known >= _LEAST_SHARE * (
        reader.known + reader.strange
    )
