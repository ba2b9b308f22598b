"""The two records of which a large log consists: a history row and a summary, each all of a record but its number."""

from __future__ import annotations

HISTORY, SUMMARY = 2, 3
_NUMBER, _LARGE = 8, (18, 26)  # tags: the number of a record; a history row and a summary
_MOST_NUMBER_BYTES, _MOST_SHIFT, _FEWEST_BYTES = 11, 35, 8


def usual(data: bytes) -> tuple[int, int]:
    """Field and start of a history row or summary that is all of a record but its number; 0 for any other record."""
    at, size = 0, len(data)
    if size > 12 and data[0] == _NUMBER:
        at = 2
        while data[at - 1] > 127 and at < _MOST_NUMBER_BYTES:
            at += 1
    if size < at + _FEWEST_BYTES or data[at] not in _LARGE:
        return 0, 0
    kind = data[at] >> 3
    length, at, shift = data[at + 1] & 127, at + 2, 7
    while data[at - 1] > 127 and shift < _MOST_SHIFT:
        length |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return (kind, at) if at + length == size else (0, 0)
