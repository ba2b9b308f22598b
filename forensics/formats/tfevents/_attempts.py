"""Restarts of a stream of points by columns; the rule is that of `_attempts.Attempts`, for arrays instead of points.

The step of a tag that falls below the one before it begins the next attempt and forgets all steps; so does a session
mark after points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: stands for a point of an earlier batch
_EARLIER = -1


@dataclass(slots=True)
class ColumnAttempts:
    """Number of the current attempt and the last step of each tag in it."""

    current: int = 0
    _last: dict[int, int] = field(default_factory=dict[int, int])

    def see(
        self, tags: NDArray[np.int32], steps: NDArray[np.int64], marks: list[int], period: int = 0
    ) -> NDArray[np.int32]:
        """Attempt of each point; a mark k, in rising order, is a session start after the first k points.

        With `period`, tags repeat with that period and are distinct in it; that is the quick way to the same answer.
        """
        import numpy as np  # noqa: PLC0415 - only runs with event files pay for it

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
        import numpy as np  # noqa: PLC0415

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
        import numpy as np  # noqa: PLC0415

        tag = tags[order]
        final = np.ones(len(tags), bool)
        final[:-1] = tag[1:] != tag[:-1]
        last = order[final]
        last = last[last >= since]
        self._last.update(zip(tags[last].tolist(), steps[last].tolist(), strict=True))
