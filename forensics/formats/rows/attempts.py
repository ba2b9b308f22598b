"""Restarts inside one source: the step of a metric goes back, so its stream began anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl


class Attempts(Struct):
    """Number of the current attempt, moved on by `see`; each metric has its own x axis, so each is watched alone."""

    current: int = 0
    _last: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])

    def see(self, name: str, step: int | None, epoch: float | None = None) -> int:
        """Attempt of one more point of `name`; a step that falls because a new epoch counts anew is no restart."""
        if step is None:
            return self.current
        at = step, -1.0 if epoch is None else epoch
        before = self._last.get(name)
        if before is not None and at[0] < before[0] and not at[1] > before[1]:
            self.restart()
        self._last[name] = at
        return self.current

    def see_table(
        self, names: Sequence[str], steps: pl.Series, epochs: pl.Series | None, there: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Attempt of each point of a table of records by names, as `see` gives them one by one, record by record.

        While the step does not fall below any that was seen there is no restart: only other records are looked at.
        """
        import numpy as np  # noqa: PLC0415 - most files of a run are no tables of metrics

        attempts = np.full(there.shape, self.current, np.int64)
        rows = steps.is_not_null().arg_true().to_numpy()
        counts = steps.drop_nulls().to_numpy()
        falls = np.append(np.flatnonzero(counts[1:] < counts[:-1]) + 1, len(counts))
        at = 0
        while at < len(rows):
            row, end = int(rows[at]), int(falls[np.searchsorted(falls, at, side="right")])
            if any(counts[at] < step for step, _ in self._last.values()):
                end = at + 1
                present: list[int] = np.flatnonzero(there[row]).tolist()
                for column in present:
                    epoch = None if epochs is None else epochs[row]
                    attempts[row, column] = self.see(names[column], int(counts[at]), epoch)
                attempts[row + 1 :] = self.current
            else:
                seen = there[rows[at:end]]
                last = len(seen) - 1 - np.argmax(seen[::-1], axis=0)
                order: list[int] = np.argsort(last, kind="stable").tolist()
                for column in order:
                    if seen[last[column], column]:
                        row = int(rows[at + last[column]])
                        epoch = None if epochs is None else epochs[row]
                        self._last[names[column]] = int(steps[row]), -1.0 if epoch is None else epoch
            at = end
        return attempts

    def restart(self) -> None:
        """Begin the next attempt; a stream without points cannot restart."""
        if self._last:
            self.current += 1
            self._last.clear()
