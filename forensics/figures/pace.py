"""Seconds per step with the levels that held: the regimes of the throughput."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import exp

from forensics.analyses.pace.clocks import Clock, best_clocks
from forensics.analyses.pace.levels import Bounds, blocks, levels
from forensics.analyses.pace.steady import steady
from forensics.figure import Chart, Level
from forensics.figures._marks import inside, step_marks
from forensics.figures._thin import MOST_POINTS, note_of, thinned
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run
from forensics.values import replace

#: Fewer times are no chart.
FEWEST = 12
_MOST_CURVES = 8
#: A drawing splits where a reader would: changes of 5 % and more that are 6 deviations above the noise.
_BOUNDS = Bounds(z=6.0, effect=0.05, shortest=8)


def pace(run: Run, report: Report) -> Iterator[Chart]:
    """Give one chart for each unit that times were printed in (step, token, sample)."""
    every = list(best_clocks(run, fewest=FEWEST))
    rules = rules_of(report, Shape.SLOWDOWN)
    for unit in dict.fromkeys(c.unit for c in every):
        yield _chart(unit, [c for c in every if c.unit == unit], run, report, rules)


def _chart(unit: str, clocks: list[Clock], run: Run, report: Report, rules: tuple[str, ...]) -> Chart:
    culprits = set(report.verdict.culprits)
    best = sorted(clocks, key=lambda c: (c.rank not in culprits, -len(c)))[:_MOST_CURVES]
    shown = [c for c in clocks if any(c is b for b in best)]
    curves = tuple(
        replace(
            thinned(_label(c), c.steps.astype(float), c.seconds, MOST_POINTS // len(shown)), culprit=c.rank in culprits
        )
        for c in shown
    )
    main = max(shown, key=lambda c: (c.rank in culprits, len(c)))
    found = tuple(_levels(main))
    xs = [x for c in curves for x in c.x]
    marks = inside(step_marks(run, report), xs)
    ys = [y for c in curves for y in c.y]
    return Chart(
        key=f"seconds-per-{unit}",
        title=f"Seconds per {unit}",
        caption=_caption(unit, _label(main), found),
        x_label="step",
        y_label=f"s per {unit}",
        curves=curves,
        marks=marks,
        levels=found,
        rules=rules,
        log=bool(ys) and min(ys) > 0 and max(ys) / min(ys) > 50,
        note=note_of(curves),
    )


def _label(clock: Clock) -> str:
    rank = f", rank {clock.rank}" if clock.rank is not None else ""
    attempt = f", attempt {clock.attempt}" if clock.attempt else ""
    return f"{clock.name}{rank}{attempt}"


def _levels(clock: Clock) -> Iterator[Level]:
    found = steady(clock.seconds, clock.steps.astype(float), clock.quantum)
    if found is None:
        return
    values, block = blocks(found.values)
    parts = levels(values, block, _BOUNDS)
    for (first, end), mean in zip(pairwise(parts.edges), parts.means, strict=True):
        a, b = found.steps[first * block], found.steps[min(end * block, len(found.steps)) - 1]
        yield Level(float(a), float(b), exp(mean), f"{exp(mean):.4g} s from step {a:g} to {b:g}")


def _caption(unit: str, label: str, levels: tuple[Level, ...]) -> str:
    if not levels:
        return f"Time per {unit} of {label}."
    if len(levels) == 1:
        return f"Time per {unit} of {label}: one level, {levels[0].label}."
    return f"Time per {unit} of {label}: {len(levels)} levels: " + "; ".join(v.label for v in levels) + "."


FIGURES = FigureKind(40, pace, frozenset((Shape.SLOWDOWN,)))
