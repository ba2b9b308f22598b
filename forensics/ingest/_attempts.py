"""Restarts inside one source: the step of a metric goes back, so its stream began anew."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Attempts:
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

    def restart(self) -> None:
        """Begin the next attempt; a stream without points cannot restart."""
        if self._last:
            self.current += 1
            self._last.clear()
