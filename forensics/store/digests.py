"""The content of a file in a few letters: SHA-256 of its ranges, and of the ranges of files that are read with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from forensics.errors import InputError
from forensics.io.limits import DEFAULT, Limits
from forensics.io.places.place import Place
from forensics.io.reading import Opened, open_source
from forensics.model import Source
from forensics.registry import Ingester

_HEAD_BYTES = 64
#: A file is hashed in ranges of so many bytes, so that several processes can share the work.
_RANGE_BYTES = 128 << 20


def digest_of(place: Place, source: Source, ingesters: Sequence[Ingester], limits: Limits = DEFAULT) -> str:
    """SHA-256 of a file, and of those that are read with it; nothing when one cannot be read to its end."""
    try:
        with open_source(place, source, limits) as opened:
            found = [_hashed(one, limits.block_bytes) for one in (opened, *_read_with(opened, ingesters))]
    except (OSError, ValueError, InputError):
        return ""
    if not all(found):
        return ""
    return found[0] if len(found) == 1 else hashlib.sha256("".join(found).encode()).hexdigest()


def _hashed(opened: Opened, block_bytes: int) -> str:
    """SHA-256 of one file; nothing when it ends before its size."""
    found = ranges(opened, 0, max(opened.size_bytes, 1), block_bytes)
    return whole_digest(found) if all(found) else ""


def whole_digest(digests: Sequence[str]) -> str:
    """SHA-256 of a file, or a slice of it, from its ranges' digests."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def ranges(opened: Opened, begin: int, end: int, block_bytes: int) -> tuple[str, ...]:
    """SHA-256 of each range of a file, of `_RANGE_BYTES`, that begins in a part of it; empty for one that ends early.

    Where the place identifies contents, as object storage does, the first is the hash of its answer.
    """
    if opened.content_id:
        said = hashlib.sha256(f"{opened.content_id} {opened.size_bytes}".encode()).hexdigest()
        return (said,) if begin == 0 else ()
    first = -(-begin // _RANGE_BYTES) * _RANGE_BYTES
    return tuple(_range(opened, at, block_bytes) for at in range(first, end, _RANGE_BYTES))


def _range(opened: Opened, begin: int, block_bytes: int) -> str:
    """SHA-256 of one range, with the extent of a hole in place of its zeros; nothing when it ends before its size."""
    data, holes = hashlib.sha256(), hashlib.sha256()
    at, end, found_holes = begin, min(begin + _RANGE_BYTES, opened.size_bytes), False
    while at < end:
        if (data_at := min(opened.next_data(at), end)) > at:
            holes.update(b"%d-%d;" % (at, data_at))
            at, found_holes = data_at, True
            continue
        if not (block := opened.span(at, block_bytes)[: end - at]):
            return ""
        data.update(block)
        at += len(block)
    return hashlib.sha256(data.digest() + holes.digest()).hexdigest() if found_holes else data.hexdigest()


def _read_with(opened: Opened, ingesters: Sequence[Ingester]) -> Iterator[Opened]:
    """The files beside a source that a reader which knows its first bytes reads with it."""
    head = opened.head(_HEAD_BYTES)
    known = [one for one in ingesters if one.beside and any(head.startswith(magic) for magic in one.sniff.magic)]
    for end, other in sorted({pair for one in known for pair in one.beside}):
        if (beside := opened.beside(end, other)) is not None:
            yield beside
