"""Whether a record is about training or held-out data, and at which training step a held-out record belongs.

Held-out metrics get a prefix (`val/loss`), so the two never make one series. OpenMMLab's loggers count validation
apart: the older one by the iterations of the validation loader, the newer one by epochs. Their validation records are
at the step of the training record before them. Where iterations begin anew with each epoch, `gstep` adds up the highest
iteration of each epoch passed.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

_FIELDS = ("mode", "split", "phase", "stage", "partition")
_HELD_OUT = {
    "val": "val", "valid": "val", "validation": "val", "dev": "val",
    "eval": "eval", "evaluation": "eval", "test": "test",
}  # fmt: skip


class Place(Struct, frozen=True):
    """Axes of one record after its split is known, and what is put before the names of its metrics."""

    step: int | None
    epoch: float | None
    gstep: int | None = None
    prefix: str = ""


def split_of(record: Mapping[str, object]) -> str:
    """The held-out split that a record names (`val`, `eval`, `test`), or nothing."""
    for name in _FIELDS:
        cell = record.get(name)
        if isinstance(cell, str) and (split := _HELD_OUT.get(cell.strip().lower())):
            return split
    return ""


class Splits(Struct):
    """Follows the training records of one file; `place` is asked for each record in order."""

    _step: int | None = None
    _epoch: float | None = None
    _gstep: int | None = None
    _base: int | None = None
    _top: int = 0
    _both: bool = False

    def place(self, record: Mapping[str, object], step: int | None, epoch: float | None) -> Place:
        """Axes of a record whose printed step and epoch are given."""
        split = split_of(record)
        by_mode = "mode" in record and "iter" in record and "step" not in record
        if by_mode and split:
            return self._beside(step, epoch, split)
        if self._both and "step" in record and "iter" not in record and self._step is not None and "lr" not in record:
            counts_epochs = self._epoch is not None and step is not None and step < self._step
            return self._beside(step, float(step or 0) if counts_epochs else epoch, split or "val")
        if split:
            return Place(step, epoch, prefix=f"{split}/")
        self._both = self._both or ("step" in record and "iter" in record)
        gstep = self._sum(step, epoch) if by_mode else None
        self._step, self._epoch, self._gstep = step, epoch, gstep
        return Place(step, epoch, gstep)

    def _beside(self, step: int | None, epoch: float | None, split: str) -> Place:
        known = self._step is not None
        return Place(self._step if known else step, epoch, self._gstep, f"{split}/")

    def _sum(self, step: int | None, epoch: float | None) -> int | None:
        """Iterations since the start, where the file begins with the first epoch; else they cannot be known."""
        if step is None or epoch is None:
            return None
        if self._epoch is None:
            self._base = 0 if epoch <= 1 else None
        elif epoch > self._epoch and self._step is not None and step <= self._step:
            self._base = None if self._base is None else self._base + self._top
            self._top = 0
        elif epoch < self._epoch:  # a restart: what came before it does not tell where it goes on
            self._base, self._top = (0 if epoch <= 1 else None), 0
        self._top = max(self._top, step)
        return None if self._base is None else self._base + step
