"""Memory over steps, with the shape that was judged, the size of the device and the step where growth would meet it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from forensics.analyses.memory.series import Series, series_of
from forensics.figure import Chart, Curve, Mark
from forensics.figures._marks import inside, step_marks
from forensics.figures._thin import MOST_POINTS, note_of, thinned
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run
from forensics.values import replace

_MOST_CHARTS = 4
_MOST_CURVES = 8
#: A projection is drawn only as far as so many times the length of the series.
_FAR = 3.0


def memory(run: Run, report: Report) -> Iterator[Chart]:
    """Give a chart for each memory metric, those that grow first."""
    every = sorted(series_of(run), key=lambda s: s.name)
    groups = [list(same) for _, same in groupby(every, key=lambda s: s.name)]
    groups = [[s for s in same if len(s.y) >= 2] for same in groups]
    ordered = sorted((g for g in groups if g), key=lambda g: not any(s.form.grows or s.gap_climbs for s in g))
    marks = step_marks(run, report)
    rules = rules_of(report, Shape.OOM)
    for same in ordered[:_MOST_CHARTS]:
        yield _chart(same, marks, rules, frozenset(report.verdict.culprits))


def _chart(same: list[Series], marks: tuple[Mark, ...], rules: tuple[str, ...], culprits: frozenset[int]) -> Chart:
    best = sorted(same, key=lambda s: (s.rank not in culprits, not s.form.grows, -len(s.y)))[:_MOST_CURVES]
    shown = [s for s in same if s in best]
    head = shown[0]
    read = tuple(
        replace(thinned(_label(s), s.x, s.y, MOST_POINTS // len(shown)), culprit=s.rank in culprits) for s in shown
    )
    ahead = tuple(line for s in shown if (line := _projection(s)) is not None)
    xs = [x for c in read for x in c.x]
    on_axis = inside(marks, xs) if head.by_step else ()
    capacity = head.capacity
    limit = (Mark(capacity, f"size {capacity:.4g} {head.meaning.unit}", "limit"),) if capacity else ()
    return Chart(
        key=head.name,
        title=f"{head.name} over {'steps' if head.by_step else 'records'}",
        caption=" ".join(_told(s) for s in shown),
        x_label="step" if head.by_step else "record",
        y_label=head.meaning.unit,
        curves=(*read, *ahead),
        marks=(*on_axis, *limit),
        rules=rules if any(s.form.grows or s.form.kind == "spike" or s.gap_climbs for s in shown) else (),
        note=note_of(read),
    )


def _label(series: Series) -> str:
    rank = f"rank {series.rank}" if series.rank is not None else ""
    device = f"device {series.device}" if series.device is not None else ""
    attempt = f"attempt {series.attempt}" if series.attempt else ""
    return ", ".join(part for part in (series.raw_name, rank, device, attempt) if part)


def _told(series: Series) -> str:
    unit, form = series.meaning.unit, series.form
    said = f"{_label(series)}: {form.kind.replace('_', ' ')}"
    if form.grows:
        since = series.step(form.onset)
        said += f", {form.per_step:+.3g} {unit} per {'step' if series.by_step else 'record'}"
        said += f" since step {since}" if since is not None else ""
    said += f", {'least' if series.meaning.falls else 'most'} {series.peak:.4g} {unit}"
    if series.reach is not None:
        said += f"; full between step {series.reach.low:,.0f} and {series.reach.high:,.0f} if it goes on"
    return said + "."


def _projection(series: Series) -> Curve | None:
    if series.reach is None or not series.capacity or series.meaning.falls:
        return None
    first, last = float(series.x[0]), float(series.x[-1])
    end = (series.reach.low + series.reach.high) / 2
    if end <= last or end - first > _FAR * (last - first):
        return None
    ys = (float(series.y[-1]), float(series.capacity))
    return Curve(f"projection of {_label(series)}", (last, end), ys, projected=True)


FIGURES = FigureKind(30, memory, frozenset((Shape.OOM,)))
