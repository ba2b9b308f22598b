"""Seconds per step as one series per source and attempt: as printed, or differenced from a running clock.

A cumulative average hides a slowdown, so it is never used; a running clock is differenced over the steps between records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from forensics.signals.losses import Series, series_of
from forensics.store.run import Run


def steptimes(run: Run) -> Iterator[Series]:
    """Give the printed step times; where a source prints none, those of its running clock of training time."""
    printed = tuple(series_of(run, "step_time_s"))
    yield from printed
    told = {(s.source, s.attempt) for s in printed}
    for clock in series_of(run, "train_time_s"):
        if (clock.source, clock.attempt) not in told:
            yield _differenced(clock)


def _differenced(clock: Series) -> Series:
    """Seconds per step between records; a record whose step or clock does not advance is left out."""
    kept: list[int] = []
    values: list[float] = []
    last = 0
    for i in range(1, len(clock)):
        a, b = clock.steps[last], clock.steps[i]
        if a is None or b is None or b <= a or clock.values[i] <= clock.values[last]:
            continue
        values.append((clock.values[i] - clock.values[last]) / (b - a))
        kept.append(i)
        last = i
    return replace(
        clock,
        name="step_time_s",
        steps=tuple(clock.steps[i] for i in kept),
        values=tuple(values),
        lines=tuple(clock.lines[i] for i in kept),
        bytes=tuple(clock.bytes[i] for i in kept),
        times=tuple(clock.times[i] for i in kept),
    )
