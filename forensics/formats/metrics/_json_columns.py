"""A JSON object of lists, one of each metric, as `json.dump(history)` of Keras and of custom loops writes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from msgspec import Struct

from forensics.formats.rows.axes import STEPS
from forensics.formats.rows.json_records import number, offsets_of, record_of
from forensics.formats.rows.text import Line
from forensics.patterns import lazily

#: The head of such a document: its first key has a list of numbers.
_HEAD = lazily(rb'\s*\{\s*"[^"\\]{1,200}"\s*:\s*\[\s*(?:[-+\d]|NaN|null|"?-?inf)', 0)


class JsonColumns(Struct, frozen=True):
    """The records of a document of lists, that of one index in one; its lists have one length, all else is left out."""

    columns: dict[str, list[object]]
    line: Line

    def __len__(self) -> int:
        """Count the records."""
        return max(map(len, self.columns.values()), default=0)

    def __iter__(self) -> Iterator[tuple[Line, dict[str, object]]]:
        """Give them in order; where no list counts steps, the place in the lists does, from 1."""
        counted = any(name.lower() in STEPS for name in self.columns)
        for index, cells in enumerate(zip(*self.columns.values(), strict=True), 1):
            record = dict(zip(self.columns, cells, strict=True))
            yield self.line, record if counted else {"step": index, **record}


def may_be_columns(head: bytes) -> bool:
    """Whether a document begins as one of lists does."""
    return _HEAD.match(head) is not None


def columns_of(data: bytes) -> JsonColumns | None:
    """Read the lists of numbers that are as long as the longest; None where the document has none of two numbers."""
    document = record_of(data)
    lists = {name: cast("list[object]", cell) for name, cell in (document or {}).items() if _are_numbers(cell)}
    longest = max(map(len, lists.values()), default=0)
    kept = {name: cells for name, cells in lists.items() if len(cells) == longest}
    if longest < 2:
        return None
    first = next(iter(kept))
    number_of_line, at = offsets_of(data, {(first,)}).of((first,))
    return JsonColumns(kept, Line(number_of_line or 1, at or 0, b"", ended=True))


def _are_numbers(cell: object) -> bool:
    return isinstance(cell, list) and all(one is None or number(one) is not None for one in cast("list[object]", cell))
