"""Points as columns on their way to the sink, a bounded number at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forensics.dialects.names import canonical
from forensics.formats.rows.out import Out
from forensics.formats.tfevents._attempts import ColumnAttempts
from forensics.io.columns import owned

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

#: unix seconds that are a time in 64 bits of nanoseconds, as in `_metric_rows.nanoseconds`
_LAST_SECOND = 9.2e9


@dataclass(frozen=True, slots=True)
class Batch:
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


@dataclass(frozen=True, slots=True)
class Piece:
    """Points of some frames: `frame` is the place of each point's frame among all, rising with ties in order."""

    frame: NDArray[np.int64]
    tags: NDArray[np.int32]
    step: NDArray[np.int64]
    wall: NDArray[np.float64]
    value: NDArray[np.float64]


@dataclass(slots=True)
class Tags:
    """Numbers of tags, in the order of their first point."""

    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def number(self, tag: str) -> int:
        """The number of a tag."""
        return self.numbers.setdefault(tag, len(self.numbers))


class Points:
    """Collects batches and hands the sink a frame whenever `capacity` points are full; `close` hands over the rest."""

    def __init__(self, out: Out, rank: int | None, attempt: int, capacity: int) -> None:
        """Start empty, in attempt number `attempt`."""
        import numpy as np  # noqa: PLC0415 - only runs with event files pay for it

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
        import numpy as np  # noqa: PLC0415

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
        import polars as pl  # noqa: PLC0415 - with numpy, above

        if not self._count:
            return
        # the buffers are filled again: what the sink keeps are copies
        tags, seq, byte, step, wall, value, attempt = (owned(column[: self._count]) for column in self._columns)
        self._count = 0
        frame = pl.DataFrame({"seq": seq, "byte": byte, "step": step})
        names, printed, scales = self._names.upto(self.tags)
        if self._names.scaled:
            value = owned(value * scales[tags])
        where = pl.Series(tags)
        frame = frame.with_columns(
            _constant_or("attempt", attempt),
            pl.lit(self._rank, dtype=pl.Int32).alias("rank"),
            _nanoseconds(wall),
            names.gather(where).alias("name"),
            printed.gather(where).alias("raw_name"),
            pl.Series("value", value),
        )
        self._out.rows("metrics", frame)


class _Names:
    """Canonical and printed names and scales by the number of a tag."""

    def __init__(self) -> None:
        import numpy as np  # noqa: PLC0415
        import polars as pl  # noqa: PLC0415

        self.scaled = False
        self._known = 0
        self._names, self._printed = pl.Series(dtype=pl.String), pl.Series(dtype=pl.String)
        self._scales = np.ones(0)

    def upto(self, tags: Tags) -> tuple[pl.Series, pl.Series, NDArray[np.float64]]:
        import numpy as np  # noqa: PLC0415
        import polars as pl  # noqa: PLC0415

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
    import polars as pl  # noqa: PLC0415

    if column[0] == column[-1]:  # attempts only rise
        return pl.lit(int(column[0]), dtype=pl.Int32).alias(name)
    return pl.Series(name, column)


def _nanoseconds(wall: NDArray[np.float64]) -> pl.Series:
    import numpy as np  # noqa: PLC0415
    import polars as pl  # noqa: PLC0415

    known = (wall > 0) & (wall < _LAST_SECOND)
    if known.all():
        return pl.Series("t_ns", owned(np.rint(wall * 1e9).astype(np.int64)))
    times = owned(np.rint(np.where(known, wall, 0) * 1e9).astype(np.int64))
    return pl.Series("t_ns", times).zip_with(pl.Series(owned(known)), pl.Series([None], dtype=pl.Int64))
