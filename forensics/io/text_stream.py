"""From pieces of any size and encoding to full pieces of UTF-8: gathered, byte-order mark removed, UTF-16 decoded."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain

from forensics.io.disk import Ledger, Piece

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def gathered(pieces: Iterable[Piece], block_bytes: int) -> Iterator[Piece]:
    """Join neighbouring pieces until each has `block_bytes` or more; a gap stays a gap."""
    parts: list[bytes] = []
    begin, size_bytes = 0, 0
    for offset, data in pieces:
        if parts and (offset != begin + size_bytes or size_bytes >= block_bytes):
            yield Piece(begin, b"".join(parts))
            parts, size_bytes = [], 0
        if not parts:
            begin = offset
        parts.append(data)
        size_bytes += len(data)
    if parts:
        yield Piece(begin, b"".join(parts))


def encoding_of(head: bytes) -> str:
    """`utf-16-le`, `utf-16-be`, `utf-8-sig` by the byte-order mark, else `utf-8`."""
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    return _UTF16.get(head[:2], "utf-8")


def _utf8(pieces: Iterable[Piece], codec: str, ledger: Ledger) -> Iterator[Piece]:
    decoder = codecs.getincrementaldecoder(codec)("replace")
    at = 0
    for data in chain((piece.data for piece in pieces), (b"",)):
        text = decoder.decode(data, not data)
        if bad := text.count("\ufffd"):
            ledger.problem("utf-16", "units that are not UTF-16 were replaced", byte=ledger.disk_bytes, count=bad)
        if out := text.encode():
            yield Piece(at, out)
            at += len(out)


def as_utf8(pieces: Iterable[Piece], ledger: Ledger) -> Iterator[Piece]:
    """Remove a byte-order mark and turn UTF-16 into UTF-8; bytes of any other encoding pass as they are.

    Offsets stay those of the stream that came in, but for UTF-16, where they are those of the UTF-8 that goes out.
    """
    stream = iter(pieces)
    first = next(stream, None)
    if first is None:
        return
    encoding = encoding_of(first.data) if first.offset == 0 else "utf-8"
    if encoding.startswith("utf-16"):
        yield from _utf8(chain((Piece(0, first.data[2:]),), stream), encoding, ledger)
        return
    bom = 3 if encoding == "utf-8-sig" else 0
    yield Piece(first.offset + bom, first.data[bom:] if bom else first.data)
    yield from stream
