"""Collects metric points as columns and hands them to the sink in batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from forensics.dialects.names import canonical
from forensics.dialects.spec import Name
from forensics.formats.rows.out import Out
from forensics.io.columns import as_column
from forensics.io.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt
    import polars as pl

#: Rows handed over at once, if `Limits.batch_rows` is not fewer.
_BATCH = 100_000
_NAMES = 100_000
#: Text of new names in one batch: names of usual length reach `_BATCH` first, long ones go to the sink's account soon.
NAME_CHARS = 4 << 20
#: A longer name is not remembered.
_LONG_CHARS = 4 << 10
#: The year 2262: nanoseconds since 1970 that 64 bits hold.
_LATEST_S = 9.2e9
INT64 = range(-(1 << 63), 1 << 63)


class At(NamedTuple):
    """Where and when a record was written: everything that its metrics share."""

    seq: int
    attempt: int = 0
    rank: int | None = None
    line: int | None = None
    byte: int | None = None
    step: int | None = None
    epoch: float | None = None
    t_ns: int | None = None
    gstep: int | None = None


class Places(NamedTuple):
    """Where and when many records were written, as columns; `rank` is the rank of all."""

    seq: pl.Series
    rank: int | None
    line: pl.Series
    byte: pl.Series
    step: pl.Series
    epoch: pl.Series | None
    t_ns: pl.Series | None
    gstep: pl.Series | None = None


def int64(value: float | None) -> int | None:
    """A whole number that fits 64 bits, or None: `12`, `12.0` and `12.7` all give 12, NaN and 1e30 give None."""
    if value is None or not math.isfinite(value):
        return None
    whole = int(value)
    return whole if whole in INT64 else None


def nanoseconds(seconds: float | None) -> int | None:
    """Unix seconds as nanoseconds, or None where they are no time (NaN, infinite, before 1970, after 2262)."""
    if seconds is None or not math.isfinite(seconds) or not 0 < seconds < _LATEST_S:
        return None
    return round(seconds * 1e9)


def unix_ns(stamp: float | None) -> int | None:
    """A printed unix time, in seconds or milliseconds, as nanoseconds; seconds since the start are no time."""
    if stamp is None or not stamp > 1e9:
        return None
    return nanoseconds(stamp / 1000 if stamp > 1e11 else stamp)


def unix_ns_of(stamps: pl.Series) -> pl.Series:
    """A column of printed unix times as nanoseconds, each as `unix_ns` reads it: so large, they are whole as floats."""
    import polars as pl  # noqa: PLC0415 - most files of a run are no tables of metrics

    seconds = (stamps / 1000).zip_with((stamps > 1e11).fill_null(value=False), stamps)
    fits = ((stamps > 1e9) & (seconds < _LATEST_S)).fill_null(value=False) & stamps.is_not_nan().fill_null(value=False)
    nulls = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(stamps))
    whole = (seconds.zip_with(fits, pl.zeros(len(stamps), eager=True)) * 1e9).cast(pl.Int64)
    return whole.zip_with(fits, nulls)


class Names(dict[str, Name]):
    """Canonical names of printed ones, each looked up once; beyond a bound they are not remembered.

    `chars` counts the text of those that were looked up.
    """

    chars = 0

    def __missing__(self, raw: str) -> Name:
        """Look a name up that is not known yet."""
        found = canonical(raw)
        self.chars += len(raw)
        if len(self) < _NAMES and len(raw) <= _LONG_CHARS:
            self[raw] = found
        return found


class MetricRows(Struct):
    """Metric points on their way to the sink; `close` hands over the rest.

    What the points of a record share is kept once as long as they are added with the same `At` object, and a name once
    for all of its points: that is a third of the time that whole rows take.
    """

    out: Out
    limits: Limits
    _places: list[At] = field(default_factory=list[At])
    _counts: list[int] = field(default_factory=list[int])
    _codes: list[int] = field(default_factory=list[int])
    _values: list[float | None] = field(default_factory=list["float | None"])
    _classes: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _names: Names = field(default_factory=Names)

    def add(
        self, at: At, raw_name: str, value: float | None, *, value_class: str | None = None, means: Name | None = None
    ) -> None:
        """Add one point; the value is brought to the unit of its canonical name, NaN and infinities stay.

        `means` is the name where the printed one alone does not tell it.
        """
        name = means or self._names[raw_name]
        if value is not None and name.scale != 1:
            value *= name.scale
        if value_class is not None:
            self._classes.append((len(self._values), value_class))
        if self._places and self._places[-1] is at:
            self._counts[-1] += 1
        else:
            self._places.append(at)
            self._counts.append(1)
        self._codes.append(self._numbers.setdefault((name.canonical, raw_name), len(self._numbers)))
        self._values.append(value)
        if len(self._values) >= min(_BATCH, self.limits.batch_rows) or self._names.chars > NAME_CHARS:
            self.close()

    def means(self, raw_name: str, name: Name) -> None:
        """Give a printed name the meaning that its numbers show, where the name alone does not tell it."""
        self._names[raw_name] = name

    def close(self) -> None:
        """Hand what is collected to the sink."""
        if not self._values:
            return
        self.out.rows("metrics", self._frame())
        self._names.chars = 0
        for held in (self._places, self._counts, self._codes, self._values, self._classes, self._numbers):
            held.clear()

    def add_table(
        self,
        places: Places,
        raw_names: Sequence[str],
        values: npt.NDArray[np.float64],
        there: npt.NDArray[np.bool_],
        attempts: npt.NDArray[np.int64],
    ) -> None:
        """Add the points of many records at once, record by record, in the order of the names.

        `values`, `there` (whether the record has the point) and `attempts` are tables of records by names.
        """
        import numpy as np  # noqa: PLC0415 - most files of a run are no tables of metrics
        import polars as pl  # noqa: PLC0415 - same

        self.close()
        record, codes = np.nonzero(there)
        known = {
            **places._asdict(),
            "rank": pl.Series([places.rank], dtype=pl.Int64).new_from_index(0, len(places.seq)),
        }
        nulls = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(places.seq))
        shared = pl.DataFrame({name: known.get(name) if known.get(name) is not None else nulls for name in At._fields})
        frame = self.coded(shared.cast({"epoch": pl.Float64}), record, raw_names, codes, values[there])
        frame = frame.with_columns(attempt=as_column(attempts[there]))
        most = min(_BATCH, self.limits.batch_rows)
        for first in range(0, frame.height, most):
            self.out.rows("metrics", frame.slice(first, most))
        self._names.chars = 0

    def coded(
        self,
        shared: pl.DataFrame,
        record: npt.NDArray[np.int64] | None,
        raw_names: Sequence[str],
        codes: npt.NDArray[np.int64],
        values: npt.NDArray[np.float64],
    ) -> pl.DataFrame:
        """Give points by the numbers of their record and of their printed name, in the units of canonical names.

        Without `record`, each point is a record of its own.
        """
        import numpy as np  # noqa: PLC0415 - most files of a run are no tables of metrics

        means = [self._names[raw_name] for raw_name in raw_names]
        if any(name.scale != 1 for name in means):
            values = values * np.array([name.scale for name in means])[codes]
        named = [(name.canonical, raw_name) for name, raw_name in zip(means, raw_names, strict=True)]
        return _points(shared, record, codes, named, values)

    def _frame(self) -> pl.DataFrame:
        import numpy as np  # noqa: PLC0415 - most files of a run are no tables of metrics
        import polars as pl  # noqa: PLC0415 - same

        columns = dict(zip(At._fields, zip(*self._places, strict=True), strict=True))
        types = {**dict.fromkeys(At._fields, pl.Int64), "epoch": pl.Float64}
        shared = pl.DataFrame([pl.Series(n, v, dtype=types[n], strict=False) for n, v in columns.items()])
        record = np.repeat(np.arange(len(self._places)), self._counts)
        values = pl.Series("value", self._values, dtype=pl.Float64, strict=False)
        frame = _points(shared, record, np.array(self._codes), list(self._numbers), values)
        if not self._classes:
            return frame
        said = dict(self._classes)
        return frame.with_columns(value_class=pl.Series([said.get(at) for at in range(frame.height)], dtype=pl.String))


def _points(
    shared: pl.DataFrame,
    record: npt.NDArray[np.int64] | None,
    codes: npt.NDArray[np.int64],
    named: Sequence[tuple[str, str]],
    values: pl.Series | npt.NDArray[np.float64],
) -> pl.DataFrame:
    """Points by the number of their record and of their name (canonical and as printed)."""
    import numpy as np  # noqa: PLC0415 - most files of a run are no tables of metrics
    import polars as pl  # noqa: PLC0415 - same

    at = as_column(codes.astype(np.uint32))
    numbered = [
        pl.Series(what, [one[i] for one in named], dtype=pl.String)[at] for i, what in enumerate(("name", "raw_name"))
    ]
    column = values.alias("value") if isinstance(values, pl.Series) else as_column(values, "value")
    records = shared if record is None else shared[as_column(record.astype(np.uint32))]
    return records.hstack([*numbered, column])
