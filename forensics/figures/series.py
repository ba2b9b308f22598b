"""Every other metric of the run over steps, each once, so that nothing that was logged stays unseen."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.analyses.memory.series import series_of
from forensics.analyses.pace.clocks import best_clocks
from forensics.case.series import keys_of
from forensics.figure import Chart
from forensics.figures._marks import step_marks
from forensics.figures._metric import chart_of, metric_of, rows_of_each
from forensics.figures.curves import named_metrics
from forensics.figures.kind import FigureKind
from forensics.figures.pace import FEWEST as FEWEST_TIMES
from forensics.model import Report
from forensics.store.run import Run
from forensics.values import replace

#: More charts than this nobody looks through.
_MOST_CHARTS = 48
#: Points of one chart, which is drawn a third of the page wide.
_POINTS = 240
_FEWEST = 3


def series(run: Run, report: Report) -> Iterator[Chart]:
    """Give a chart for each metric of three values or more that no other figure draws, most records first."""
    drawn = {*named_metrics(run, report), *(s.name for s in series_of(run))}
    drawn |= {str(clock.row(0)["name"]) for clock in best_clocks(run, fewest=FEWEST_TIMES) if clock.form == "time"}
    counts = keys_of(run).group_by("name").agg(most=pl.col("n_finite").max())
    left = counts.filter(~pl.col("name").is_in(drawn) & (pl.col("most") >= _FEWEST))
    names = left.sort("most", "name", descending=[True, False])["name"].to_list()
    shown = sorted(names[:_MOST_CHARTS])
    marks = step_marks(run, report)
    for (name,), own in rows_of_each(run, [(name,) for name in shown]):
        chart = chart_of(metric_of(name, own, report), marks, points=_POINTS) if own.height else None
        if chart is not None:
            left_out = f"; {len(shown)} of {len(names)} metrics are drawn" if len(shown) < len(names) else ""
            yield replace(chart, note=chart.note + left_out)


FIGURES = FigureKind(70, series)
