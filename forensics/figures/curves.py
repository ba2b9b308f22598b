"""Metrics over steps: the loss, the gradient norm and every metric that a finding names; those of the verdict first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from forensics.analyses.memory.series import series_of
from forensics.analyses.pace.names import pace_name
from forensics.case.series import keys_of
from forensics.figure import Chart, Mark
from forensics.figures._marks import step_marks
from forensics.figures._metric import Metric, chart_of, metric_of, rows_of_each
from forensics.figures.kind import FigureKind
from forensics.model import Report, Severity, Shape
from forensics.store.run import Run
from forensics.values import replace

_ALWAYS = ("loss", "grad_norm")
_MOST_CHARTS = 8
#: What an evaluation loss says, it says beside the loss of training.
_COMPARED = ("loss", "eval_loss")
#: A chart around the onset is added when the whole one shows so many times more records.
_ZOOM, _AROUND = 4, 60
_FEWEST = 3


def curves(run: Run, report: Report) -> Iterator[Chart]:
    """Give a chart for each metric that matters, and one around the onset where the whole is too wide to show it.

    A single record is no curve: its number is with the evidence.
    """
    named = named_metrics(run, report)
    marks = step_marks(run, report)
    counts = keys_of(run).filter(pl.col("n") > pl.col("n_null")).group_by("name").agg(pl.col("n", "n_null").sum())
    have = set(counts.filter(pl.col("n") - pl.col("n_null") > 1)["name"])
    for names, own in rows_of_each(run, _charted([n for n in named if n in have], report)):
        rules = tuple(sorted({rule for name in names for rule in named[name]}))
        if own.height > 1:
            yield from _charts(metric_of(" and ".join(names), own, report), marks, rules)


def _charted(named: Sequence[str], report: Report) -> list[tuple[str, ...]]:
    """Give the names of each chart: those of a pair that the lead finding compares share one, which comes first."""
    lead = report.findings[report.verdict.lead].evidence if report.verdict.lead is not None else ()
    compares = _COMPARED[-1] in {e.name for e in lead} and set(_COMPARED) <= set(named)
    alone: list[tuple[str, ...]] = [(name,) for name in named if not compares or name not in _COMPARED]
    return [*([_COMPARED] if compares else []), *alone][:_MOST_CHARTS]


def named_metrics(run: Run, report: Report) -> dict[str, tuple[str, ...]]:
    """Give the loss, the gradient norm and what the evidence names, each with the rules that name it.

    What the lead finding names comes first; memory and step times have figures of their own.
    """
    found: dict[str, set[str]] = {name: set() for name in _ALWAYS}
    elsewhere = {s.name for s in series_of(run)}
    for finding in report.findings:
        if finding.severity is not Severity.INFO:
            for name in (e.name for e in finding.evidence if e.name):
                if name in _ALWAYS or (name not in elsewhere and pace_name(name) is None):
                    found.setdefault(name, set()).add(finding.rule)
    lead = report.findings[report.verdict.lead].rule if report.verdict.lead is not None else None
    return {name: tuple(sorted(found[name])) for name in sorted(found, key=lambda name: lead not in found[name])}


def _charts(metric: Metric, marks: tuple[Mark, ...], rules: tuple[str, ...]) -> Iterator[Chart]:
    whole = chart_of(metric, marks, rules)
    if whole is None:
        return
    yield whole
    onset = next((m.at for m in marks if m.role == "onset"), None)
    if onset is None or not metric.by_step:
        return
    near = tuple(part for p in metric.parts if (part := _around(p, onset)).height >= _FEWEST)
    if near and sum(p.height for p in metric.parts) >= _ZOOM * sum(p.height for p in near):
        around = chart_of(replace(metric, parts=near), marks, rules)
        if around is not None:
            title = f"{metric.name} around the onset"
            yield replace(around, key=f"{around.key}-around-the-onset", title=title)


def _around(part: pl.DataFrame, onset: float) -> pl.DataFrame:
    index = int((part["at"] < onset).sum())
    return part.slice(max(0, index - _AROUND), 2 * _AROUND)


FIGURES = FigureKind(20, curves, frozenset((Shape.NAN, Shape.LEARNING)))
