"""Points as columns on their way to the sink, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from forensics.dialects.names import canonical
from forensics.formats.rows.out import Out
from forensics.io.columns import as_column, owned

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


class Points:
    """Collects batches and hands the sink a frame whenever `capacity` points are full; `close` hands over the rest."""

    def __init__(self, out: Out, rank: int | None, attempt: int, capacity: int) -> None:
        """Start empty, in attempt number `attempt`."""
        self.tags = Tags()
        self._out = out
        self._rank = rank
        self._attempts = ColumnAttempts(attempt)
        kinds = (np.int32, np.int64, np.int64, np.int64, np.float64, np.float64, np.int32)
        self._columns: list[NDArray[Any]] = [np.zeros(0, kind) for kind in kinds]
        self._capacity = capacity
        self._count = 0
        self._names = _Names()

    def add(self, batch: Batch) -> None:
        """Add the points of a batch."""
        attempt = self._attempts.see(batch.tags, batch.step, batch.marks, batch.period)
        fields = (batch.tags, batch.seq, batch.byte, batch.step, batch.wall, batch.value, attempt)
        done, total = 0, len(batch.tags)
        while done < total:
            if self._count + total - done > len(self._columns[0]) < self._capacity:
                room = min(self._capacity, max(2 * len(self._columns[0]), self._count + total - done, 1024))
                self._columns = [np.resize(c, room) if len(c) else np.zeros(room, c.dtype) for c in self._columns]
            take = min(total - done, self._capacity - self._count)
            for column, part in zip(self._columns, fields, strict=True):
                column[self._count : self._count + take] = part[done : done + take]
            self._count += take
            done += take
            if self._count == self._capacity:
                self.close()

    def close(self) -> None:
        """Hand what is collected to the sink."""
        if not self._count:
            return
        # the buffers are filled again: what the sink keeps are copies
        tags, seq, byte, step, wall, value, attempt = (owned(column[: self._count]) for column in self._columns)
        self._count = 0
        frame = pl.DataFrame([as_column(seq, "seq"), as_column(byte, "byte"), as_column(step, "step")])
        names, printed, scales = self._names.upto(self.tags)
        if self._names.scaled:
            value = owned(value * scales[tags])
        where = as_column(tags)
        frame = frame.with_columns(
            _constant_or("attempt", attempt),
            pl.lit(self._rank, dtype=pl.Int32).alias("rank"),
            _nanoseconds(wall),
            names.gather(where).alias("name"),
            printed.gather(where).alias("raw_name"),
            as_column(value, "value"),
        )
        self._out.rows("metrics", frame)


class _Names:
    """Canonical and printed names and scales by the number of a tag."""

    def __init__(self) -> None:

        self.scaled = False
        self._known = 0
        self._names, self._printed = pl.Series(dtype=pl.String), pl.Series(dtype=pl.String)
        self._scales = np.ones(0)

    def upto(self, tags: Tags) -> tuple[pl.Series, pl.Series, NDArray[np.float64]]:

        if len(tags.numbers) > self._known:
            printed = list(tags.numbers)[self._known :]
            found = [canonical(tag) for tag in printed]
            self._names = pl.concat([self._names, pl.Series([n.canonical for n in found], dtype=pl.String)])
            self._printed = pl.concat([self._printed, pl.Series(printed, dtype=pl.String)])
            self._scales = np.concatenate([self._scales, np.array([n.scale for n in found])])
            self.scaled = bool((self._scales != 1).any())
            self._known = len(tags.numbers)
        return self._names, self._printed, self._scales


def _constant_or(name: str, column: NDArray[np.int32]) -> pl.Series | pl.Expr:
    if column[0] == column[-1]:  # attempts only rise
        return pl.lit(int(column[0]), dtype=pl.Int32).alias(name)
    return as_column(column, name)


def _nanoseconds(wall: NDArray[np.float64]) -> pl.Series:
    known = (wall > 0) & (wall < _LAST_SECOND)
    if known.all():
        return as_column(np.rint(wall * 1e9).astype(np.int64), "t_ns")
    times = as_column(np.rint(np.where(known, wall, 0) * 1e9).astype(np.int64), "t_ns")
    return times.zip_with(as_column(known), pl.Series([None], dtype=pl.Int64))


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
