"""A traceback whose head is not in the log: a file that begins inside of one, as excerpts do."""

from __future__ import annotations

import re
from typing import Any

from forensics.dialects import prefixes
from forensics.dialects.events.tracebacks import HEAD, WINDOW_BYTES
from forensics.patterns import lazily

#: A frame within so many lines from the begin of a file, and so many bytes, opens it.
_LINES, _BYTES = 3, 4096
_FRAME = lazily(rb'^[^"]{0,200}File "[^"]{1,500}", line \d{1,9}, in .')


def opening(data: bytes, lead: re.Pattern[str] | None = None) -> tuple[dict[str, Any], bytes] | None:
    """Give the head that the first block of a file lacks, as a row of the line before it, with the bytes from it on."""
    at = 0
    for number, raw in enumerate(data[:_BYTES].split(b"\n")[:_LINES]):
        if HEAD.encode() in raw:
            return None
        if _FRAME.match(raw) is not None:
            line = raw.decode("utf-8", "replace")
            head = f"{line[: len(prefixes.split(line, lead)[0])]}{HEAD}:"
            window = f"{head}\n".encode() + data[at : at + WINDOW_BYTES]
            row = {"seq": number - 1, "line": number, "byte": at - len(head.encode()) - 1, "rank": None, "raw": head}
            return row, window
        at += len(raw) + 1
    return None
