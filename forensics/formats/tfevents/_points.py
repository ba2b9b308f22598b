"""Points as columns on their way to the sink, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from forensics.formats.rows.metrics import MetricRows
from forensics.io.columns import as_column

#: unix seconds that are a time in 64 bits of nanoseconds, as in `_metric_rows.nanoseconds`
_LAST_SECOND = 9.2e9
#: stands for a point of an earlier batch
_EARLIER = -1


class Batch(Struct, frozen=True):
    """Points in the order of their records, one array entry each.

    `tags` are numbers that `Tags` gave, `seq` and `byte` the number and offset of the record, `wall` unix seconds.
    `marks` are session starts: k stands after the first k points. With a `period`, tags repeat after that many points
    and differ within.
    """

    tags: NDArray[np.int32]
    seq: NDArray[np.int64]
    byte: NDArray[np.int64]
    step: NDArray[np.int64]
    wall: NDArray[np.float64]
    value: NDArray[np.float64]
    marks: list[int] = field(default_factory=list[int])
    period: int = 0


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


# Restarts of a stream of points by columns; the rule is that of `_attempts.Attempts`, for arrays instead of points.
#
# The step of a tag that falls below the one before it begins the next attempt and forgets all steps; so does a session
# mark after points.


class ColumnAttempts(Struct):
    """Number of the current attempt and the last step of each tag in it."""

    current: int = 0
    _last: dict[int, int] = field(default_factory=dict[int, int])

    def see(
        self, tags: NDArray[np.int32], steps: NDArray[np.int64], marks: list[int], period: int = 0
    ) -> NDArray[np.int32]:
        """Attempt of each point; a mark k, in rising order, is a session start after the first k points.

        With `period`, tags repeat with that period and are distinct in it; that is the quick way to the same answer.
        """
        if period and not marks and self._rises(tags[:period].tolist(), steps.reshape(-1, period)):
            return np.full(len(tags), self.current, np.int32)
        before = self.current
        order = np.argsort(tags, kind="stable")
        starts = list(self._restarts(marks, self._falls(tags, steps, order)))
        since = starts[-1] if starts else 0
        self._remember(tags, steps, order, since)
        begins = np.zeros(len(tags), np.int32)
        begins[[at for at in starts if at < len(tags)]] = 1
        return np.cumsum(begins, dtype=np.int32) + np.int32(before)

    def _rises(self, tags: list[int], steps: NDArray[np.int64]) -> bool:
        """Whether no step of a block with one column per tag falls; if so, its last row is remembered."""
        first: list[int] = steps[0].tolist()
        if any(step < self._last.get(tag, step) for tag, step in zip(tags, first, strict=True)):
            return False
        if (steps[1:] < steps[:-1]).any():
            return False
        self._last.update(zip(tags, steps[-1].tolist(), strict=True))
        return True

    def _falls(
        self, tags: NDArray[np.int32], steps: NDArray[np.int64], order: NDArray[np.int64]
    ) -> list[tuple[int, int]]:
        """Points below the one before them of their tag, in order, each with the position of that one."""
        tag, step = tags[order], steps[order]
        again = np.zeros(len(tags), bool)
        again[1:] = tag[1:] == tag[:-1]
        fall = np.flatnonzero(again[1:] & (step[1:] < step[:-1]))
        falls: list[tuple[int, int]] = list(zip(order[fall + 1].tolist(), order[fall].tolist(), strict=True))
        for at in order[~again].tolist():
            last = self._last.get(int(tags[at]))
            if last is not None and steps[at] < last:
                falls.append((at, _EARLIER))
        return sorted(falls)

    def _restarts(self, marks: list[int], falls: list[tuple[int, int]]) -> Iterator[int]:
        """Positions at which an attempt begins: a fall counts when its earlier point is of the attempt that it ends."""
        since, fresh = 0, False
        events = sorted([(at, None) for at in marks] + falls, key=lambda event: (event[0], event[1] is not None))
        for at, earlier in events:
            if earlier is None:
                counts = at > since or (not fresh and bool(self._last))
            else:
                counts = not fresh if earlier == _EARLIER else earlier >= since
            if counts:
                self.current += 1
                since, fresh = at, True
                yield at
        if fresh:
            self._last.clear()

    def _remember(
        self, tags: NDArray[np.int32], steps: NDArray[np.int64], order: NDArray[np.int64], since: int
    ) -> None:

        tag = tags[order]
        final = np.ones(len(tags), bool)
        final[:-1] = tag[1:] != tag[:-1]
        last = order[final]
        last = last[last >= since]
        self._last.update(zip(tags[last].tolist(), steps[last].tolist(), strict=True))


class Points(Struct):
    """Collects batches and hands the sink frames whenever `capacity` points are there; `close` hands over the rest."""

    rows: MetricRows
    rank: int | None
    attempts: ColumnAttempts
    capacity: int
    tags: Tags = field(default_factory=Tags)
    _held: list[tuple[NDArray[Any], ...]] = field(default_factory=list[tuple[NDArray[Any], ...]])
    _count: int = 0

    def add(self, batch: Batch) -> None:
        """Add the points of a batch."""
        attempt = self.attempts.see(batch.tags, batch.step, batch.marks, batch.period)
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
