"""Bytes over a memory snapshot's recording: allocated and reserved after every event, with the peak and each OOM."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from forensics.analyses.snapshots.per_device import Snapshot
from forensics.analyses.snapshots.timeline import Timeline, timeline_of
from forensics.figure import Chart, Mark
from forensics.figures._snapshots import chosen, name_of, unit_of
from forensics.figures._thin import MOST_POINTS, note_of, thinned
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run

_MOST_OOMS = 3
#: A gap of so many bytes between reserved and allocated at the peak is worth a word.
_WORTH = 1 << 20


def timelines(run: Run, report: Report) -> Iterator[Chart]:
    """Give a chart for each snapshot that recorded events."""
    rules = rules_of(report, Shape.OOM)
    for number, snapshot in enumerate(chosen(run, report), 1):
        if snapshot.events >= 2 and snapshot.trusted:
            yield _chart(snapshot, timeline_of(run, snapshot), number, rules)


def _chart(snapshot: Snapshot, line: Timeline, number: int, rules: tuple[str, ...]) -> Chart:
    clocked = line.seconds is not None and float(line.seconds[-1]) > 0
    x = line.seconds if clocked and line.seconds is not None else np.arange(len(line.seq), dtype=np.float64)
    unit, size = unit_of(snapshot.peak_bytes)
    curves = tuple(
        thinned(label, x, values / size, MOST_POINTS // 2)
        for label, values in (("reserved", line.reserved), ("allocated", line.allocated))
    )
    top = int(line.allocated.argmax())
    marks = [Mark(float(x[top]), f"peak, {line.allocated[top] / size:,.4g} {unit} allocated", "event")]
    marks += [Mark(float(x[i]), "out of memory", "onset") for i in line.ooms[-_MOST_OOMS:]]
    return Chart(
        key=f"memory-timeline-{number}",
        title=f"Memory over the recording of {name_of(snapshot)}",
        caption=_caption(snapshot, line),
        x_label="seconds after the first event" if clocked else "event",
        y_label=unit,
        curves=curves,
        marks=tuple(marks),
        rules=rules,
        note=note_of(curves),
    )


def _caption(snapshot: Snapshot, line: Timeline) -> str:
    unit, size = unit_of(snapshot.peak_bytes)
    said = f"{snapshot.events:,} events; at the peak {snapshot.peak_bytes / size:,.4g} {unit} are allocated"
    if snapshot.gap_bytes > _WORTH:
        said += f" and {snapshot.gap_bytes / size:,.4g} {unit} more reserved"
    said += f"; the recording is {snapshot.quality}."
    return said + (f" Memory ran out {len(line.ooms)} times." if len(line.ooms) > 1 else "")


FIGURES = FigureKind(33, timelines, frozenset((Shape.OOM,)))
