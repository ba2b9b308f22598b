"""Where the events of a trace begin and end in its bytes, without decoding it.

Writers lay a trace out in four ways (several fields a line, one field a line, re-indented, one line), but all events of
one file alike: the text between the first two tells where every later one begins. A string cannot hold that mark in the
layouts of several lines, because JSON has no line end in strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from forensics.patterns import lazily

OPEN = lazily(rb'"traceEvents"\s*:\s*\[|\A\s*\[')
#: An array of events whose name is damaged.
UNNAMED = lazily(rb'\[(?=\s*\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args)"\s*:)')
_FIRST = lazily(rb"\A(\s*)(\{\s*\"(?:[^\"\\]|\\.){0,200}\"|\{\s*\})")
_TOKEN = lazily(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]]', re.DOTALL)
_BEHIND = rb"(?=\s*(?:,\s*\"|\}\s*\Z|\Z))"
_CLOSE = rb"\}\s*\]" + _BEHIND
#: The bracket of an array, with what may stand behind one: a key, the end of the root, or nothing.
_ARRAY_END = lazily(rb"\]" + _BEHIND)
_KEY_BYTES = 40
_MOST_ENDS = 8


class Layout(Struct, frozen=True):
    """`mark` separates two events; the first `left` bytes of it belong to the one before, the comma to neither.

    `close` finds where the array may end, right behind the brace of its last event. The last `key_bytes` of the mark
    name the first key of an event, which not all events of a file have to share.
    """

    mark: bytes
    left: int
    skip: int
    close: re.Pattern[bytes]
    key_bytes: int = 0

    @property
    def sure(self) -> bool:
        """Whether nothing but events can have the mark between them: no string holds a line end."""
        return b"\n" in self.mark

    def last_cut(self, data: bytes) -> tuple[int, int] | None:
        """The end of the last event that is whole for sure, and the begin of the one behind it."""
        at = data.rfind(self.mark)
        return (at + self.left, at + self.skip) if at >= 0 else None

    def ends(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where the array may end: behind the brace of its last event, and behind its bracket."""
        for found in islice(self.close.finditer(data), _MOST_ENDS):
            yield data.index(b"}", found.start()) + 1, found.end()

    def parts(self, data: bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Begin and end of each stretch between two marks, whatever key follows, from `start` to `stop`."""
        begin, mark = start, self.mark[: len(self.mark) - self.key_bytes]
        while (at := data.find(mark, begin, stop)) >= 0:
            yield begin, at + self.left
            begin = at + self.skip
        yield begin, stop


def layout_of(data: bytes) -> Layout | None:
    """The layout by the first events of an array, given from behind its bracket; None while that is not to be told."""
    first = _FIRST.match(data)
    if first is None:
        return None
    lead, key = first[1], first[2]
    indent = lead[lead.rfind(b"\n") :] if b"\n" in lead else b""
    if indent:
        close = re.compile(re.escape(indent) + _CLOSE)
        for end in (b"\r\n", b"\n"):
            if (mark := b"," + end + indent.lstrip(b"\r\n") + b"{") in data:
                return Layout(mark, 0, len(mark) - 1, close)
    key = key[:_KEY_BYTES] if key.endswith(b'"') else b"{"
    behind = re.compile(rb"\}(\s*,\s*)" + re.escape(key)).search(data)
    if behind is None:
        return None
    left, skip, close = b"}" + behind[1], 1 + len(behind[1]), re.compile(_CLOSE)
    if b"\n" in behind[1]:
        return Layout(left + b"{", 1, skip, close)
    brace = key[: key.find(b'"') + 1] or key
    return Layout(left + key, 1, skip, close, len(key) - len(brace))


class Objects(Struct):
    """The outermost objects of a stretch, by its braces and strings; a brace that closes nothing is passed over.

    Once they were given: `end` is behind the bracket that closes the array, `open_at` where an object begins that does
    not close.
    """

    data: bytes
    end: int | None = None
    open_at: int | None = None

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Begin and end of each object, in order."""
        data = self.data
        depth = begin = 0
        for token in _TOKEN.finditer(data):
            first = data[token.start()]
            if first in b"{[":
                if depth == 0:
                    begin = token.start()
                depth += 1
            elif first in b"}]" and depth:
                depth -= 1
                if depth == 0 and first == 0x7D and data[begin] == 0x7B:
                    yield begin, token.end()
            elif first == 0x5D and _ARRAY_END.match(data, token.start()):
                self.end = token.end()
                return
        self.open_at = begin if depth else None
