"""Where the events of a trace begin and end in its bytes, without decoding it.

Writers lay a trace out in four ways (several fields a line, one field a line, re-indented, one line), but all events of
one file alike: what stands between the first two tells where every later one begins. A string cannot hold that mark in
the layouts of several lines, because JSON has no line end in strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

OPEN = re.compile(rb'"traceEvents"\s*:\s*\[|\A\s*\[')
_FIRST = re.compile(rb"\A(\s*)(\{\s*\"(?:[^\"\\]|\\.){0,200}\"|\{\s*\})")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]]', re.DOTALL)
_INDENT = re.compile(rb"\s*\Z")
_CLOSE = rb"\}\s*\](?=\s*(?:,\s*\"|\}|\Z))"
_KEY_BYTES = 40
_MOST_ENDS = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """`mark` stands between two events; the first `left` bytes of it belong to the one before, the comma to neither.

    `close` finds where the array may end, right behind the brace of its last event.
    """

    mark: bytes
    left: int
    skip: int
    close: re.Pattern[bytes]

    def last_cut(self, data: bytes) -> tuple[int, int] | None:
        """The end of the last event that is whole for sure, and the begin of the one behind it."""
        at = data.rfind(self.mark)
        return (at + self.left, at + self.skip) if at >= 0 else None

    def ends(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where the array may end: behind the brace of its last event, and behind its bracket."""
        for found in islice(self.close.finditer(data), _MOST_ENDS):
            yield data.index(b"}", found.start()) + 1, found.end()

    def parts(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Begin and end of each stretch between two marks."""
        begin = 0
        while (at := data.find(self.mark, begin)) >= 0:
            yield begin, at + self.left
            begin = at + self.skip
        yield begin, len(data)


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
    return Layout(b"}" + behind[1] + key, 1, 1 + len(behind[1]), re.compile(_CLOSE))


def whole_objects(data: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of each outermost object, by its braces and strings; it ends where the array's bracket closes."""
    depth = begin = 0
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first in b"{[":
            if depth == 0:
                begin = token.start()
            depth += 1
        elif first in b"}]":
            depth -= 1
            if depth < 0:
                return
            if depth == 0 and first == 0x7D and data[begin] == 0x7B:
                yield begin, token.end()
