"""Points as columns on their way to the sink, a bounded number at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from forensics.formats.rows.attempts import Attempts
from forensics.formats.rows.metrics import MetricRows
from forensics.io.columns import as_column

#: unix seconds that are a time in 64 bits of nanoseconds, as in `_metric_rows.nanoseconds`
_LAST_SECOND = 9.2e9


class Batch(Struct, frozen=True):
    """Points in the order of their records, one array entry each.

    `tags` are numbers that `Tags` gave, `seq` and `byte` the number and offset of the record, `wall` unix seconds.
    `marks` are session starts: k comes after the first k points.
    """

    tags: NDArray[np.int32]
    seq: NDArray[np.int64]
    byte: NDArray[np.int64]
    step: NDArray[np.int64]
    wall: NDArray[np.float64]
    value: NDArray[np.float64]
    marks: list[int] = field(default_factory=list[int])


class Piece(Struct, frozen=True):
    """Points of some frames: `frame` is the place of each point's frame among all, rising with ties in order."""

    frame: NDArray[np.int64]
    tags: NDArray[np.int32]
    step: NDArray[np.int64]
    wall: NDArray[np.float64]
    value: NDArray[np.float64]


class Tags(Struct):
    """Numbers of tags, in the order of their first point."""

    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def number(self, tag: str) -> int:
        """The number of a tag."""
        return self.numbers.setdefault(tag, len(self.numbers))


class Points(Struct):
    """Collects batches and hands the sink frames whenever `capacity` points are there; `close` hands over the rest."""

    rows: MetricRows
    rank: int | None
    attempts: Attempts
    capacity: int
    tags: Tags = field(default_factory=Tags)
    _held: list[tuple[NDArray[Any], ...]] = field(default_factory=list[tuple[NDArray[Any], ...]])
    _count: int = 0

    def add(self, batch: Batch) -> None:
        """Add the points of a batch."""
        attempt = self.attempts.see_many(list(self.tags.numbers), batch.tags, (batch.step, None), batch.marks)
        self._held.append((batch.tags, batch.seq, batch.byte, batch.step, batch.wall, batch.value, attempt))
        self._count += len(batch.tags)
        if self._count >= self.capacity:
            self.close()

    def close(self) -> None:
        """Hand what is collected to the sink."""
        if not self._count:
            return
        tags, seq, byte, step, wall, value, attempt = map(np.concatenate, zip(*self._held, strict=True))
        self._held.clear()
        self._count = 0
        numbers = {"seq": seq, "byte": byte, "step": step, "attempt": attempt}
        own = pl.DataFrame([_nanoseconds(wall), *(as_column(column, name) for name, column in numbers.items())])
        frame = self.rows.coded(own, None, list(self.tags.numbers), tags, value)
        frame = frame.with_columns(rank=pl.lit(self.rank, dtype=pl.Int32))
        for first in range(0, frame.height, self.capacity):
            self.rows.out.rows("metrics", frame.slice(first, self.capacity))


def _nanoseconds(wall: NDArray[np.float64]) -> pl.Series:
    known = (wall > 0) & (wall < _LAST_SECOND)
    if known.all():
        return as_column(np.rint(wall * 1e9).astype(np.int64), "t_ns")
    times = as_column(np.rint(np.where(known, wall, 0) * 1e9).astype(np.int64), "t_ns")
    return times.zip_with(as_column(known), pl.Series([None], dtype=pl.Int64))
