"""Points of experiment trackers that keep many runs in one file: attempts by run and restart, records by run and step.

A tracker may write late, from a queue: a point with a lower step but an earlier time came late, and is no restart. Only
a lower step at the same or a later time is.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from forensics.formats.rows.attempts import Attempts
from forensics.formats.rows.metrics import At, MetricRows, int64
from forensics.formats.trackers._facts import TrackerFacts

_SEVERAL = 2


def time_of(stamp: float | None) -> int | None:
    """A stored unix time, in milliseconds (seconds in the first versions), as nanoseconds, exactly."""
    whole = int64(stamp)
    if whole is None or not 10**9 < whole < 9 * 10**12:
        return None
    return whole * 10**6 if whole > 10**11 else whole * 10**9 if whole < 9 * 10**9 else None


class Point(Struct, frozen=True):
    """One value of one metric of one run, at its byte of the file."""

    run: str
    name: str
    value: float | None
    step: int | None
    t_ns: int | None
    byte: int | None
    line: int | None = None


class TrackedPoints(Struct):
    """Hands points to the sink; `base` is the first attempt.

    Attempts are numbered in the order in which their first points stand in the file, over all its runs. Neighbours of
    the same run, step and time are one record.
    """

    rows: MetricRows
    rank: int | None
    base: int = 0
    records: int = 0
    runs: dict[str, Attempts] = field(default_factory=dict[str, Attempts])
    _numbers: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    _latest: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _record: tuple[object, ...] = ()

    def add(self, point: Point) -> None:
        """Add one point."""
        record = point.run, point.step, point.t_ns
        if record != self._record:
            self._record = record
            self.records += 1
        at = At(
            self.records - 1,
            attempt=self._attempt(point),
            rank=self.rank,
            line=point.line,
            byte=point.byte,
            step=point.step,
            t_ns=point.t_ns,
        )
        self.rows.add(at, point.name, point.value)

    def tell(self, facts: TrackerFacts, names: Mapping[str, str], under: Mapping[str, str]) -> None:
        """Note which run each attempt is of, and what that run's facts stand under, where there are several runs."""
        if len(self.runs) < _SEVERAL:
            return
        for (run, _), attempt in self._numbers.items():
            name = names.get(run, run)
            unique = sum(other == name for other in names.values()) < _SEVERAL
            told = {"run": name if unique else run, "under": under.get(run, "")}
            facts.put("progress", f"tracker.attempt.{attempt}", told)

    def attempt_of(self, run: str) -> int | None:
        """The first attempt of a run, None for a run without points."""
        return self._numbers.get((run, 0))

    def _attempt(self, point: Point) -> int:
        attempts = self.runs.setdefault(point.run, Attempts())
        series = point.run, point.name
        now, before = point.t_ns, self._latest.get(series)
        late = now is not None and before is not None and now < before
        local = attempts.current if late else attempts.see(point.name, point.step)
        if now is not None and not late:
            self._latest[series] = now
        return self._numbers.setdefault((point.run, local), self.base + len(self._numbers))
