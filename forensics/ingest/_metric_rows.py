"""Collects metric points as columns and hands them to the sink in batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from forensics.dialects.names import canonical
from forensics.dialects.spec import Name
from forensics.ingest._out import Out

_BATCH = 100_000
_NAMES = 100_000
COLUMNS = (
    "seq",
    "attempt",
    "rank",
    "line",
    "byte",
    "step",
    "epoch",
    "t_ns",
    "gstep",
    "name",
    "raw_name",
    "value",
    "value_class",
)
INT64 = range(-(1 << 63), 1 << 63)


class At(NamedTuple):
    """Where and when a record stands: everything that its metrics share."""

    seq: int
    attempt: int = 0
    rank: int | None = None
    line: int | None = None
    byte: int | None = None
    step: int | None = None
    epoch: float | None = None
    t_ns: int | None = None
    gstep: int | None = None


def class_of(value: float | None) -> str:
    """Class of one value, as `store.schema.value_class` names them."""
    if value is None:
        return "null"
    if math.isfinite(value):
        return "finite"
    return "nan" if math.isnan(value) else "+inf" if value > 0 else "-inf"


def int64(value: float | None) -> int | None:
    """A whole number that fits 64 bits, or None: `12`, `12.0` and `12.7` all give 12, NaN and 1e30 give None."""
    if value is None or not math.isfinite(value):
        return None
    whole = int(value)
    return whole if whole in INT64 else None


def nanoseconds(seconds: float | None) -> int | None:
    """Unix seconds as nanoseconds, or None where they are no time (NaN, infinite, before 1970, after 2262)."""
    if seconds is None or not math.isfinite(seconds) or not 0 < seconds < 9.2e9:
        return None
    return round(seconds * 1e9)


def unix_ns(stamp: float | None) -> int | None:
    """A printed unix time, in seconds or milliseconds, as nanoseconds; seconds since the start are no time."""
    if stamp is None or not stamp > 1e9:
        return None
    return nanoseconds(stamp / 1000 if stamp > 1e11 else stamp)


class Names(dict[str, Name]):
    """Canonical names of printed ones, each looked up once; beyond a bound they are not remembered."""

    def __missing__(self, raw: str) -> Name:
        """Look a name up that is not known yet."""
        found = canonical(raw)
        if len(self) < _NAMES:
            self[raw] = found
        return found


@dataclass(slots=True)
class MetricRows:
    """Metric points on their way to the sink; `close` hands over the rest."""

    out: Out
    _rows: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
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
        known = value_class or class_of(value)
        self._rows.append((*at, name.canonical, raw_name, value, known))
        if len(self._rows) >= _BATCH:
            self.close()

    def close(self) -> None:
        """Hand what is collected to the sink."""
        if self._rows:
            self.out.rows("metrics", dict(zip(COLUMNS, zip(*self._rows, strict=True), strict=True)))
            self._rows.clear()
