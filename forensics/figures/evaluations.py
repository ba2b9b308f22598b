"""Scores of the evaluations: over their steps where there are several, else task by task."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from forensics.analyses.evals.results import courses
from forensics.analyses.evals.sittings import filed_step
from forensics.figure import Bar, Bars, Chart, Curve
from forensics.figures._marks import inside, step_marks
from forensics.figures._metric import key_of
from forensics.figures._thin import MOST_BARS, MOST_POINTS, note_of, thinned
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run

_MOST_CURVES, _MOST_CHARTS = 8, 4
Scores = dict[str, list[tuple[int | None, float]]]


def evaluations(run: Run, report: Report) -> Iterator[Chart | Bars]:
    """Give a figure for each kind of score, such as `acc`: the tasks of which most evaluations are known."""
    found: dict[str, Scores] = {}
    for (task, metric, chosen), rows in courses(run).items():
        name = task if chosen == "none" else f"{task}, {chosen}"
        steps = [row["step"] if row["step"] is not None else filed_step(row) for row in rows]
        found.setdefault(metric, {})[name] = list(zip(steps, [float(row["value"]) for row in rows], strict=True))
    rules = rules_of(report, Shape.BAD_EVAL)
    for metric, scores in sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))[:_MOST_CHARTS]:
        if any(len(course) > 1 for course in scores.values()):
            yield _chart(metric, scores, run, report, rules)
        else:
            yield _bars(metric, scores, rules)


def _chart(metric: str, scores: Scores, run: Run, report: Report, rules: tuple[str, ...]) -> Chart:
    kept = sorted(scores, key=lambda task: (-len(scores[task]), task))[:_MOST_CURVES]
    by_step = all(step is not None for task in kept for step, _ in scores[task])
    curves = tuple(_curve(task, scores[task], by_step=by_step) for task in kept)
    marks = inside(step_marks(run, report), [x for c in curves for x in c.x]) if by_step else ()
    left = f"; {len(kept)} of {len(scores)} tasks" if len(kept) < len(scores) else ""
    return Chart(
        key=f"evaluations-{key_of(metric)}",
        title=f"{metric} of the evaluations",
        caption="; ".join(_told(task, scores[task]) for task in kept) + ".",
        x_label="step" if by_step else "evaluation",
        y_label=metric,
        curves=curves,
        marks=marks,
        rules=rules,
        note=note_of(curves) + left,
    )


def _curve(task: str, course: list[tuple[int | None, float]], *, by_step: bool) -> Curve:
    xs = [float(step if by_step and step is not None else n) for n, (step, _) in enumerate(course, 1)]
    return thinned(task, np.array(xs), np.array([value for _, value in course]), MOST_POINTS // _MOST_CURVES)


def _told(task: str, course: list[tuple[int | None, float]]) -> str:
    (first, before), (last, after) = course[0], course[-1]
    at = [f" at step {step}" if step is not None else "" for step in (first, last)]
    return f"{task} {before:.4g}{at[0]}, then {after:.4g}{at[1]}" if len(course) > 1 else f"{task} {before:.4g}{at[0]}"


def _bars(metric: str, scores: Scores, rules: tuple[str, ...]) -> Bars:
    kept = list(scores)[:MOST_BARS]
    return Bars(
        key=f"evaluations-{key_of(metric)}",
        title=f"{metric} of each task",
        caption="; ".join(_told(task, scores[task]) for task in kept[:_MOST_CURVES]) + ".",
        unit=metric,
        parts=(metric,),
        bars=tuple(Bar(task, (scores[task][0][1],)) for task in kept),
        rules=rules,
        note=f"the first {len(kept)} of {len(scores)} tasks" if len(kept) < len(scores) else "",
    )


FIGURES = FigureKind(18, evaluations, frozenset((Shape.BAD_EVAL,)))
