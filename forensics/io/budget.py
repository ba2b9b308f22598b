"""The allowed cost of reading one file, in proportion to its size: an account that readers and the sink charge.

`Limits` bounds bytes; a small file can still ask for work without end, by values that it refers to again and again, by
names that it joins, by counts that it only claims. A unit is about 0.15 µs of Python, or a cell of 16 bytes. What takes
bytes of its own (an opcode, a token) is bounded by them and is not charged; what is reached again is, each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

from forensics.errors import LimitExceeded
from forensics.io.limits import Limits

T = TypeVar("T")
#: Characters of text that cost as much as one cell, which takes 16 bytes: text is held twice while it becomes a column.
TEXT_CHARS = 8


class WorkExceeded(LimitExceeded):
    """A file asks for more work than its size allows; the rows read until then are kept."""


class Budget:
    """The account of one file: `work` of its reader and `cells` of its rows, each up to `limit` units.

    They are apart so that rows which were made before the work ended can still be handed over. `ended` says how many
    units were asked for when one of them was over; from then on every charge of that account raises.
    """

    def __init__(self, size_bytes: int, limits: Limits) -> None:
        """Open the account of a file of `size_bytes` on disk."""
        self._limits = limits
        self.size_bytes = size_bytes
        self.limit = limits.work_units + limits.work_units_per_byte * size_bytes
        self.work = self.cells = self.reached_bytes = 0
        self.ended = 0

    def grow(self, decoded_bytes: int, disk_bytes: int) -> None:
        """Note how far a stream was read: a compressed file may cost what its decoded bytes may."""
        self.size_bytes = max(self.size_bytes, decoded_bytes)
        self.limit = self._limits.work_units + self._limits.work_units_per_byte * self.size_bytes
        if not self.ended:
            self.reached_bytes = disk_bytes

    def charge(self, units: int) -> None:
        """Charge work of the reader; raises `WorkExceeded` above the limit."""
        self.work += units
        if self.work > self.limit:
            self.end(self.work)

    def fitting(self, rows: int, cost: Callable[[int], int]) -> int:
        """Charge rows and give how many of them, from the first on, fit; `cost` gives the cells of the first n."""
        left = max(self.limit - self.cells, 0)
        asked = units = cost(rows)
        while rows and units > left:
            rows = min(rows * left // units, rows // 2)
            units = cost(rows)
        self.cells += units
        if units < asked:
            self.ended = self.ended or self.cells - units + asked
        return rows

    def end(self, asked: int) -> None:
        """End the account at a charge of `asked` units; raises `WorkExceeded` always."""
        self.ended = self.ended or asked
        raise WorkExceeded("units of work", limit=self.limit, actual=asked)

    def visit(self, value: object) -> None:
        """Charge a plain value and all that it reaches, what is shared each time; one that holds itself ends here.

        Raises `WorkExceeded` above the limit.
        """
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                self.charge(1 + len(one) // TEXT_CHARS)
            elif isinstance(one, Mapping):
                inner = cast("Mapping[object, object]", one)
                self.charge(1 + 2 * len(inner))
                waiting += inner
                waiting += inner.values()
            elif isinstance(one, list | tuple):
                inner = cast("Sequence[object]", one)
                self.charge(1 + len(inner))
                waiting += inner

    def each(self, items: Iterable[T], text: Callable[[T], str]) -> Iterator[T]:
        """Give the items as they come and charge each, by the length of its `text`.

        Raises `WorkExceeded` above the limit.
        """
        for item in items:
            self.charge(1 + len(text(item)) // TEXT_CHARS)
            yield item
