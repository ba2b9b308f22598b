"""Restarts inside one source: the step of a metric goes back, so its stream began anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Attempts(Struct):
    """Number of the current attempt, moved on by `see`; each metric has its own x axis, so each is watched alone."""

    current: int = 0
    _last: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])

    def see(self, name: str, step: int | None, epoch: float | None = None) -> int:
        """Attempt of one more point of `name`; a step that falls because a new epoch counts anew is no restart."""
        if step is None:
            return self.current
        at = step, -1.0 if epoch is None else epoch
        if _falls(self._last.get(name), at):
            self.restart()
        self._last[name] = at
        return self.current

    def see_many(
        self,
        names: Sequence[str],
        codes: npt.NDArray[np.integer[Any]],
        points: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None],
        marks: Sequence[int] = (),
    ) -> npt.NDArray[np.int64]:
        """Attempt of each point, as `see` gives them one by one: of `names[code]`, with the steps and epochs `points`.

        A mark k, in rising order, begins the next attempt after the first k points, as `restart` does. While no step
        falls below the one before it, nor below any that was seen, there is no restart by steps.
        """
        import numpy as np  # noqa: PLC0415 - most files of a run are no tables of metrics

        steps, epochs = points
        before, highest = self.current, max((step for step, _ in self._last.values()), default=None)
        may_fall = len(steps) and ((highest is not None and steps[0] < highest) or (steps[1:] < steps[:-1]).any())
        starts = list(self._restarts(marks, self._fallen(names, codes, points) if may_fall else []))
        last = np.full(len(names), -1)
        last[codes] = np.arange(len(codes))
        for code in np.flatnonzero(last >= (starts[-1] if starts else 0)).tolist():
            at = last[code]
            self._last[names[code]] = int(steps[at]), -1.0 if epochs is None else float(epochs[at])
        begins = np.zeros(len(codes), np.int64)
        begins[[at for at in starts if at < len(codes)]] = 1
        return np.cumsum(begins) + before

    def _fallen(
        self,
        names: Sequence[str],
        codes: npt.NDArray[np.integer[Any]],
        points: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None],
    ) -> list[tuple[int, int | None]]:
        """Points below the one before them of their name, each with the place of that one; None for an earlier call."""
        import numpy as np  # noqa: PLC0415 - same

        order = np.argsort(codes, kind="stable")
        code, step, epoch = codes[order], *(None if one is None else one[order] for one in points)
        assert step is not None
        again = code[1:] == code[:-1]
        falls = again & (step[1:] < step[:-1])
        falls &= True if epoch is None else ~(epoch[1:] > epoch[:-1])
        fall = np.flatnonzero(falls)
        found: list[tuple[int, int | None]] = [*zip(order[fall + 1].tolist(), order[fall].tolist(), strict=True)]
        for place in np.flatnonzero(~np.append(np.zeros(1, np.bool_), again)).tolist():
            own = int(step[place]), -1.0 if epoch is None else float(epoch[place])
            if _falls(self._last.get(names[int(code[place])]), own):
                found.append((int(order[place]), None))
        return sorted(found, key=lambda one: one[0])

    def _restarts(self, marks: Sequence[int], falls: Sequence[tuple[int, int | None]]) -> Iterator[int]:
        """Places at which an attempt begins: a fall counts when its earlier point is of the attempt that it ends."""
        since, fresh = 0, False
        events = sorted([*((at, True, None) for at in marks), *((at, False, earlier) for at, earlier in falls)],
                        key=lambda event: (event[0], not event[1]))  # fmt: skip
        for at, is_mark, earlier in events:
            counts = at > since or (not fresh and bool(self._last)) if is_mark else (
                not fresh if earlier is None else earlier >= since
            )  # fmt: skip
            if counts:
                self.current += 1
                since, fresh = at, True
                yield at
        if fresh:
            self._last.clear()

    def restart(self) -> None:
        """Begin the next attempt; a stream without points cannot restart."""
        if self._last:
            self.current += 1
            self._last.clear()


def _falls(before: tuple[int, float] | None, now: tuple[int, float]) -> bool:
    """Whether a step is below the one before it, and its epoch not above."""
    return before is not None and now[0] < before[0] and not now[1] > before[1]
