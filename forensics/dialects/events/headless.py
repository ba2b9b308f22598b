"""What a traceback lacks in a log: its head, where the file begins inside of one, or all of it but its last lines."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import orjson

from forensics.dialects import prefixes
from forensics.dialects.events.tracebacks import HEAD, WINDOW_BYTES, ends_of, goes_on
from forensics.knowledge.errors import by_id, telling
from forensics.patterns import lazily

#: A frame within so many lines from the begin of a file, and so many bytes, opens it.
_LINES, _BYTES = 3, 4096
_FRAME = lazily(rb'^[^"]{0,200}File "[^"]{1,500}", line \d{1,9}, in .')
#: A message ends within so many lines: one of xformers lists its seven kernels in 30, and room for more.
_MESSAGE_LINES, _TAIL_BYTES = 40, 16 << 10
_BREAK = lazily(rb"[\n\r\x08]")


def opening(data: bytes, lead: prefixes.Lead | None = None) -> tuple[dict[str, Any], bytes] | None:
    """Give the head that the first block of a file lacks, as a row of the line before it, with the bytes from it on."""
    at = 0
    for number, raw in enumerate(data[:_BYTES].split(b"\n")[:_LINES]):
        if HEAD.encode() in raw:
            return None
        if _FRAME.match(raw) is not None:
            line = raw.decode("utf-8", "replace")
            rest = line[len(prefixes.split(line, lead)[0]) :]
            # the exception is no deeper than its frames: Keras (`in user code:`) indents both alike
            head = f"{line[: len(line) - len(rest.lstrip())]}{HEAD}:"
            window = f"{head}\n".encode() + data[at : at + WINDOW_BYTES]
            row = {"seq": number - 1, "line": number, "byte": at - len(head.encode()) - 1, "rank": None, "raw": head}
            return row, window
        at += len(raw) + 1
    return None


def closing(data: bytes, lead: prefixes.Lead | None = None) -> tuple[int, int, dict[str, Any]] | None:
    """Give the exception without frames whose message of several lines ends a log, as a part of a row.

    `data` is the last block; with it the number of breaks and of bytes before the exception's line.
    """
    end = len(data.rstrip())
    begin = max(0, end - _TAIL_BYTES)
    begins = [begin, *(hit.end() for hit in _BREAK.finditer(data, begin, end))][-_MESSAGE_LINES:]
    texts = [data[a : b - 1].decode("utf-8", "replace") for a, b in pairwise([*begins, end + 1])]
    split = [prefixes.split(text, lead) for text in texts]
    lines = [text[len(prefix) :] for text, (prefix, _) in zip(texts, split, strict=True)]
    rows = [by_id()[code] for code in telling("exception")]
    hits = [(n, hit) for n, line in enumerate(lines[:-1]) for row in rows if (hit := row.compiled.search(line))]
    if not hits or not all(map(goes_on, lines[hits[-1][0] + 1 :])):
        return None
    number, hit = hits[-1]
    more = ends_of([line.strip() for line in lines[number + 1 :] if line.strip()])
    attrs = {"role": "root", "shape": "crash", "exc": hit["exc"], "message": hit["msg"], "more": more, "alone": "yes"}
    said = {"text": texts[number], "stamped": texts[number][:160], "rank": split[number][1], "step": None}
    known = {"level": "error", "code": "traceback", "attrs": orjson.dumps(attrs).decode()}
    return len(_BREAK.findall(data, 0, begins[number])), begins[number], said | known
