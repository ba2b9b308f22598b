"""Python tracebacks as one event each: the exception, its message, the innermost frame.

Lines of other ranks between those of a traceback are passed over; a chain (`During handling of …`, `direct cause`) is
one event whose `exc` is the last exception and whose `root_exc` is the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from forensics.dialects import _lines, _prefix

HEAD = "Traceback (most recent call last)"
_FRAME = re.compile(r'File "(?P<file>[^"]{1,500})", line (?P<line>\d{1,9}), in (?P<function>.{1,200})')
_RICH = re.compile(r"^[│|] (?P<file>\S{1,500}\.py):(?P<line>\d{1,9}) in (?P<function>\S{1,200})")
_EXCEPTION = re.compile(
    r"^(?P<exc>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Failure|Unsupported|Timeout|Iteration"
    r"|Expired|Died|Canceled|Cancelled|Group)|(?:[a-z_]\w*\.)+[A-Z]\w*|KeyboardInterrupt|SystemExit|[A-Z]\w*Err)"
    r"(?:: ?(?P<message>.*))?$"
)
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_ANSI = re.compile(_lines.ANSI)
_BREAK = re.compile("[\n\r\x08]")


@dataclass(slots=True)
class Traceback:
    """What was read so far; `lines` counts what belongs to it."""

    exc: str = ""
    message: str = ""
    file: str = ""
    line: str = ""
    function: str = ""
    frames: int = 0
    at: int = 0
    text: str = ""
    root: tuple[str, str] | None = None
    read: int = 0
    ended: bool = False
    chain: bool = field(default=False)

    def attrs(self) -> dict[str, str]:
        """As the strings of an event."""
        frame = f"{self.file}:{self.line} in {self.function}" if self.file else ""
        root = self.root if self.root and self.root != (self.exc, self.message) else None
        said = {
            "exc": self.exc,
            "message": self.message[:1000],
            "frame": frame,
            "frames": str(self.frames),
            "root_exc": root[0] if root else "",
            "root_message": root[1][:1000] if root else "",
        }
        return {key: value for key, value in said.items() if value}


def body(line: str, head: str) -> tuple[str, int | None]:
    """A line without its prefixes (and without the words that stood before `Traceback` in the head), and its rank."""
    prefix, rank = _prefix.split(line)
    rest = line[len(prefix) :]
    if head and rest.startswith(head):
        rest = rest[len(head) :]
    return rest, rank


def read(head: str, lines: Sequence[str]) -> Traceback:
    """Read the traceback that begins with the line `head`; `lines` follow it, without line ends."""
    prefix, rank = _prefix.split(head)
    before = head[len(prefix) : head.find(HEAD, len(prefix))]
    indent = len(before) - len(before.lstrip()) if not before.strip() else 0
    found = Traceback()
    for number, line in enumerate(lines, start=1):
        rest, speaker = body(_ANSI.sub("", line), before if before.strip() else "")
        if rank is not None and speaker != rank:
            continue
        if _take(found, rest[min(indent, len(rest) - len(rest.lstrip())) :], number, _ANSI.sub("", line)):
            break
    return found


def _take(found: Traceback, rest: str, number: int, raw: str) -> bool:
    """Account for one line; True when the traceback is over."""
    if (frame := _FRAME.search(rest) or _RICH.match(rest)) is not None:
        found.frames += 1
        found.file, found.line, found.function = frame["file"], frame["line"], frame["function"].strip()
        found.ended = False
    elif not rest.strip():
        return False
    elif rest.startswith(_CHAIN):
        found.chain = True
        found.root = found.root or (found.exc, found.message)
    elif rest.startswith("Traceback") and found.ended:
        if not found.chain:
            return True
        found.chain = found.ended = False
    elif (last := _EXCEPTION.match(rest)) is not None and not found.ended:
        found.exc, found.message, found.at, found.text = last["exc"], (last["message"] or "").strip(), number, raw
        found.ended = True
    elif found.ended and not found.chain:
        if not found.message:
            found.message = rest.strip()
        return number > found.at + 12
    found.read = number
    return False


def lines_after(data: bytes, at: int, limit: int) -> list[str]:
    """At most `limit` segments after the one that begins at byte `at` (64 KiB at most), decoded with replacement."""
    window = data[at : at + (64 << 10)].decode("utf-8", "replace")
    return _BREAK.split(window)[1 : limit + 1]
