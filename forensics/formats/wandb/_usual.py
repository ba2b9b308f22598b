"""The two records of which a large log consists: a history row and a summary, each all of a record but its number."""

from __future__ import annotations

from forensics.io.records.leveldb_log import Batch

HISTORY, SUMMARY = 2, 3
NUMBER, LARGE = 8, (18, 26)  # tags: the number of a record; a history row and a summary
MOST_NUMBER_BYTES, MOST_SHIFT, FEWEST_BYTES = 11, 35, 8
#: Fewer records are looked at one by one.
_FEW = 64


def usual(data: bytes) -> tuple[int, int]:
    """Field and start of a history row or summary that is all of a record but its number; 0 for any other record."""
    at, size = 0, len(data)
    if size > 12 and data[0] == NUMBER:
        at = 2
        while data[at - 1] > 127 and at < MOST_NUMBER_BYTES:
            at += 1
    if size < at + FEWEST_BYTES or data[at] not in LARGE:
        return 0, 0
    kind = data[at] >> 3
    length, at, shift = data[at + 1] & 127, at + 2, 7
    while data[at - 1] > 127 and shift < MOST_SHIFT:
        length |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return (kind, at) if at + length == size else (0, 0)


def usual_of(batch: Batch, view: memoryview, *, together: bool) -> tuple[list[int], list[int]]:
    """Fields and starts of all records as `usual` gives them; `together` allows to use numpy for many."""
    count = len(batch.starts)
    if not together or count < _FEW:
        found = [usual(batch.record(n, view).payload) for n in range(count)]
        return [kind for kind, _ in found], [at for _, at in found]
    from forensics.formats.wandb._heads import kinds_of  # noqa: PLC0415 - numpy is loaded for large logs only

    return kinds_of(batch, view)
