"""Whether a record is about training or held-out data, and at which training step a held-out record belongs.

Held-out metrics get a prefix (`val/loss`), so the two never make one series. OpenMMLab's loggers count validation
apart: the older one by the iterations of the validation loader, the newer one by epochs. Their validation records are
at the step of the training record before them. Where iterations begin anew with each epoch, `gstep` adds up the highest
iteration of each epoch passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from forensics.formats.rows.axes import SPLITS
from forensics.knowledge.vocabulary import keys_of, stands_for

#: Keys of a record, in the spellings that writers use.
_SPELLED = frozenset((*SPLITS, *(name.title() for name in SPLITS), "runContext"))
_SPLIT_BY_WORD = dict.fromkeys(keys_of("split_of_training"), "") | {
    word: part for part in ("val", "eval", "test") for word in keys_of(f"split_named_{part}")
}


class Place(Struct, frozen=True):
    """Axes of one record, and its held-out split; the split is empty where the record is of training."""

    step: int | None
    epoch: float | None
    gstep: int | None = None
    split: str = ""


def split_named(cell: str) -> str | None:
    """The held-out split that a word names (`val`, `eval`, `test`), nothing for training, None for another word."""
    return _SPLIT_BY_WORD.get(cell.strip().lower())


def split_of(record: Mapping[str, object]) -> str:
    """The held-out split that a record names, or nothing."""
    for name, cell in record.items():
        if isinstance(cell, str) and name in _SPELLED and (split := split_named(cell)):
            return split
    return ""


@lru_cache(maxsize=4096)
def within(split: str, name: str) -> str:
    """The name of a metric of a split, unless it says itself that it is held out."""
    return name if not split or stands_for("held_out_word", name) else f"{split}/{name}"


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
            return Place(step, epoch, split=split)
        self._both = self._both or ("step" in record and "iter" in record)
        gstep = self._sum(step, epoch) if by_mode else None
        self._step, self._epoch, self._gstep = step, epoch, gstep
        return Place(step, epoch, gstep)

    def _beside(self, step: int | None, epoch: float | None, split: str) -> Place:
        known = self._step is not None
        return Place(self._step if known else step, epoch, self._gstep, split)

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
