"""Points of a W&B run on their way to the sink, and what a `null` among them means.

Writers before 0.28.1 turn a NumPy float32 or float16 NaN into `null`, so a null in a metric that holds numbers
elsewhere is a NaN that was probably lost. That is only known at the end, so nulls are held back until then.
"""

from __future__ import annotations

from msgspec import Struct, field

from forensics.dialects.spec import Name
from forensics.formats.rows.metrics import At, MetricRows
from forensics.formats.wandb._system import parts_of

_NAMES = 100_000
_HELD = 100_000
_KEEPS_NAN = (0, 28, 1)


def loses_nan(version: str) -> bool:
    """Whether a writer of this version may have written a NaN as null; one that is not known may."""
    found = parts_of(version)
    return found is None or found < _KEEPS_NAN


class Points(Struct):
    """Hands points on, less the nulls, which `close` judges; the number of a record is its byte in the file."""

    rows: MetricRows
    numeric: set[str] = field(default_factory=set[str])
    _held: list[tuple[At, str]] = field(default_factory=list[tuple[At, str]])

    def add(self, at: At, raw: str, value: float | None, name: Name | None = None) -> None:
        """Add one point; None is a null."""
        if value is not None:
            if raw not in self.numeric and len(self.numeric) < _NAMES:
                self.numeric.add(raw)
            self.rows.add(at, raw, value, means=name)
        elif len(self._held) < _HELD:
            self._held.append((at, raw))
        else:
            self._null(at, raw, suspected=raw in self.numeric)

    def close(self, version: str) -> None:
        """Hand everything over; `version` is the writer's."""
        suspect = loses_nan(version)
        for at, raw in self._held:
            self._null(at, raw, suspected=suspect and raw in self.numeric)
        self._held.clear()
        self.rows.close()

    def _null(self, at: At, raw: str, *, suspected: bool) -> None:
        self.rows.add(at, raw, None, value_class="null-suspected-nan" if suspected else "null")
