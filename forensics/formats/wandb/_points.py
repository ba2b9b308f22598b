"""Points of a W&B run on their way to the sink, and what a `null` among them means.

Writers before 0.28.1 turn a NumPy float32 or float16 NaN into `null`, so a null in a metric that holds numbers
elsewhere is a NaN that was probably lost. That is only known at the end, so nulls are held back until then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct, field

from forensics.dialects.spec import Name
from forensics.formats.rows.metrics import NAME_CHARS, At, Names, class_of
from forensics.formats.rows.out import Out
from forensics.patterns import lazily

_BATCH = 100_000
_NAMES = 100_000
_HELD = 100_000
_COLUMNS = (*(column for column in At._fields if column != "line"), "name", "raw_name", "value", "value_class")
_KEEPS_NAN = (0, 28, 1)
_VERSION = lazily(r"(\d+)\.(\d+)(?:\.(\d+))?")


class Place(NamedTuple):
    """What the points of one record share; `seq` is its byte in the file."""

    seq: int
    attempt: int
    rank: int | None
    byte: int
    step: int | None = None
    epoch: float | None = None
    t_ns: int | None = None


def loses_nan(version: str) -> bool:
    """Whether a writer of this version may have written a NaN as null; one that is not known may."""
    found = _VERSION.match(version)
    return found is None or tuple(int(part or 0) for part in found.groups()) < _KEEPS_NAN


class Points(Struct):
    """Collects points; `close` hands over the rest and judges the nulls."""

    out: Out
    batch_rows: int = _BATCH
    numeric: set[str] = field(default_factory=set[str])
    _rows: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    _held: list[tuple[Place, int | None, str]] = field(default_factory=list[tuple[Place, int | None, str]])
    names: Names = field(default_factory=Names)

    def add(self, at: Place, gstep: int | None, raw: str, value: float | None, name: Name | None = None) -> None:
        """Add one point; None is a null."""
        if value is None:
            if len(self._held) < _HELD:
                self._held.append((at, gstep, raw))
            else:
                self._null(at, gstep, raw, suspected=raw in self.numeric)
            return
        if raw not in self.numeric and len(self.numeric) < _NAMES:
            self.numeric.add(raw)
        name = name or self.names[raw]
        if name.scale != 1:
            value *= name.scale
        self._rows.append((*at, gstep, name.canonical, raw, value, class_of(value)))
        if len(self._rows) >= min(self.batch_rows, _BATCH) or self.names.chars > NAME_CHARS:
            self.flush()

    def close(self, version: str) -> None:
        """Hand everything over; `version` is the writer's."""
        suspect = loses_nan(version)
        for at, gstep, raw in self._held:
            self._null(at, gstep, raw, suspected=suspect and raw in self.numeric)
        self._held.clear()
        self.flush()

    def flush(self) -> None:
        """Hand over what is collected, less the nulls."""
        if self._rows:
            self.out.rows("metrics", dict(zip(_COLUMNS, zip(*self._rows, strict=True), strict=True)))
            self._rows.clear()
            self.names.chars = 0

    def _null(self, at: Place, gstep: int | None, raw: str, *, suspected: bool) -> None:
        found = "null-suspected-nan" if suspected else "null"
        self._rows.append((*at, gstep, self.names[raw].canonical, raw, None, found))
