"""Lines of a text source with their places, whole small documents, and the account of what was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from forensics.errors import LimitExceeded
from forensics.formats.rows.out import Out
from forensics.io.limits import Limits
from forensics.io.reading import Opened

_DAMAGED = "the document is cut or damaged"


class Line(NamedTuple):
    """One line without its end; `byte` counts in the decoded stream, `ended` is false for a last line without one."""

    number: int
    byte: int
    text: bytes
    ended: bool


def lines_of(opened: Opened) -> Iterator[Line]:
    """Every line of the decoded stream, in order."""
    for block in opened.blocks():
        number, at = block.first_line, 0
        while at < len(block.data):
            end = block.data.find(b"\n", at)
            stop = len(block.data) if end < 0 else end
            yield Line(number, block.offset + at, block.data[at:stop].removesuffix(b"\r"), end >= 0)
            number, at = number + 1, stop + 1


def head_lines(opened: Opened, size_bytes: int) -> list[bytes]:
    """Lines among the first bytes that are not blank; one that the bytes end in is left out, save where it is alone."""
    lines = opened.text_head(size_bytes).split(b"\n")
    whole = lines if len(lines) == 1 else lines[:-1]
    return [line.removesuffix(b"\r") for line in whole if line.strip()]


def document(opened: Opened, limits: Limits) -> bytes:
    """The whole text of a small document; an uncompressed one may be a single long line.

    Raises `LimitExceeded` when it is longer than `limits.json_bytes`.
    """
    if not opened.compression and not opened.head(2).startswith((b"\xff\xfe", b"\xfe\xff")):
        if opened.size_bytes > limits.json_bytes:
            raise LimitExceeded("bytes of a document", limit=limits.json_bytes, actual=opened.size_bytes)
        return opened.span(0, opened.size_bytes)
    parts: list[bytes] = []
    size = 0
    for block in opened.blocks():
        size += len(block.data)
        if size > limits.json_bytes:
            raise LimitExceeded("bytes of a document", limit=limits.json_bytes, actual=size)
        parts.append(block.data)
    return b"".join(parts)


def misfit(line: Line, what: str, out: Out) -> int:
    """Bytes of a line that is none of its format, after saying `what` is wrong; the last line may be cut."""
    code, which = ("line-not-read", "a line") if line.ended else ("row-cut", "the last line")
    out.issue(code, f"{which} {what}", byte=line.byte, line=line.number)
    return len(line.text)


def settle_document(opened: Opened, out: Out, *, records: int, lost_bytes: int = 0) -> None:
    """Account for a whole document, of which `lost_bytes` at the end were not understood."""
    if opened.problems():
        settle(opened, out, records=records, lost_bytes=lost_bytes, reason=_DAMAGED)
        return
    lost = min(lost_bytes, opened.size_bytes)
    if lost:
        out.account(skipped_bytes=lost, reason=_DAMAGED)
    out.account(read_bytes=opened.size_bytes - lost, records=records)


def settle(opened: Opened, out: Out, *, records: int, lost_bytes: int = 0, reason: str = "") -> None:
    """Hand the reader's account and its problems to the sink; `lost_bytes` were read but not understood."""
    for issue in opened.problems():
        out.issue(issue.code, issue.message, byte=issue.byte, line=issue.line, count=issue.count)
    account = opened.account()
    lost = min(lost_bytes, account.read_bytes)
    if account.skipped_bytes:
        out.account(skipped_bytes=account.skipped_bytes, reason=account.reason)
    if lost:
        out.account(skipped_bytes=lost, reason=reason)
    out.account(read_bytes=account.read_bytes - lost, records=records)
