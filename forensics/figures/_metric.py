"""The chart of one metric: every series of its name over steps, with what is marked on it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.case.joined.stores import counted
from forensics.case.steps import SERIES, at
from forensics.figure import Chart, Curve, Mark
from forensics.figures._marks import inside
from forensics.figures._thin import MOST_POINTS, note_of, thinned
from forensics.model import Report
from forensics.patterns import lazily
from forensics.store.run import Run
from forensics.values import replace

_MOST_CURVES = 8
_FOREIGN = lazily(r"[^A-Za-z0-9_./-]+")
#: A logarithmic axis is taken where the middle 90 % of the values fill less than a fifth of a linear one.
_SQUEEZED, _TAIL = 0.2, 5.0
#: Values that differ less are distinguishable on a linear axis at any place of it.
_TIMES = 5.0


class Metric(Struct, frozen=True):
    """The rows of one metric that are drawn, a frame for each series; `culprits` are ranks at fault.

    `by_step`: every row has a step.
    """

    name: str
    parts: tuple[pl.DataFrame, ...]
    culprits: frozenset[int]
    by_step: bool


def rows_of(run: Run, names: Sequence[str]) -> pl.DataFrame:
    """Give the records of some metrics in their order, with the step `at` of each."""
    return (
        counted(run, pl.col("name").is_in(names))
        .filter(pl.col("value_class") != "null")
        .with_columns(at(), pl.col("attempt").fill_null(0))
        .sort("source", "attempt", "seq", maintain_order=True)
        .collect()
    )


def metric_of(name: str, rows: pl.DataFrame, report: Report) -> Metric:
    """Choose the series that are drawn, in the order of the files: those of culprits, then those with most records."""
    record = pl.col("seq").rank("dense").over("source", "attempt", "rank") - 1  # one axis for unlike intervals
    parts = rows.with_columns(record=record).partition_by(*SERIES, maintain_order=True)
    culprits = frozenset(report.verdict.culprits)
    best = sorted(parts, key=lambda p: (p["rank"][0] not in culprits, -p.height))[:_MOST_CURVES]
    shown = tuple(part for part in parts if any(part is b for b in best))
    return Metric(name, shown, culprits, rows["at"].null_count() == 0)


def key_of(name: str) -> str:
    """Give the name of a metric as a key: what a key cannot hold is left out, and a digest keeps two names apart."""
    kept = _FOREIGN.sub("-", name)
    return kept if kept == name else f"{kept}-{sha256(name.encode(errors='backslashreplace')).hexdigest()[:8]}"


def chart_of(
    metric: Metric, marks: tuple[Mark, ...], rules: tuple[str, ...] = (), points: int = MOST_POINTS
) -> Chart | None:
    """Draw the series with at most so many points; None where there is nothing to draw."""
    parts, by_step = metric.parts, metric.by_step
    labels = _labels(parts)
    made = tuple(
        replace(_curve(part, label, points // len(parts), by_step), culprit=part["rank"][0] in metric.culprits)
        for part, label in zip(parts, labels, strict=True)
    )
    drawn = tuple(c for c in made if c.x or c.gaps)
    if not drawn:
        return None
    xs = [v for c in drawn for v in (*c.x, *(g.first for g in c.gaps), *(g.last for g in c.gaps))]
    shown = inside(marks, xs) if by_step else ()
    return Chart(
        key=key_of(metric.name),
        title=f"{metric.name} over {'steps' if by_step else 'records'}",
        caption=_caption(metric.name, drawn, shown),
        x_label="step" if by_step else "record",
        y_label=metric.name,
        curves=drawn,
        marks=shown,
        rules=rules,
        log=_wide(drawn),
        note=note_of(drawn),
    )


def _curve(part: pl.DataFrame, label: str, most: int, by_step: bool) -> Curve:  # noqa: FBT001 - which axis there is
    x = part["at" if by_step else "record"].to_numpy()
    y = part["value"].fill_null(float("nan")).to_numpy()
    return thinned(label, x.astype(np.float64), y.astype(np.float64), most)


def _labels(parts: Sequence[pl.DataFrame]) -> list[str]:
    """Name each series by what tells it from the others."""
    heads = [part.row(0, named=True) for part in parts]
    differ = [c for c in SERIES if len({h[c] for h in heads}) > 1] or ["raw_name"]
    told = next(([c] for c in ("rank", "attempt", "raw_name") if len({h[c] for h in heads}) == len(heads)), differ)
    told = told if len(heads) > 1 else ["raw_name"]
    words = {"rank": "rank {}", "attempt": "attempt {}", "source": "{}", "raw_name": "{}"}
    return [", ".join(words[c].format(h[c] if h[c] is not None else "?") for c in told) for h in heads]


def _wide(curves: tuple[Curve, ...]) -> bool:
    """Whether only a logarithmic axis shows both the usual values and the largest, as under a spike."""
    values = [v for c in curves for v in c.y]
    if not values or min(values) <= 0 or max(values) < _TIMES * min(values):
        return False
    low, high = np.percentile(values, [_TAIL, 100 - _TAIL])
    return float(high - low) < _SQUEEZED * (max(values) - min(values))


def _caption(name: str, curves: tuple[Curve, ...], marks: tuple[Mark, ...]) -> str:
    values = [v for c in curves for v in c.y]
    said = [f"{name}: from {min(values):.4g} to {max(values):.4g}."] if values else [f"{name} is never finite."]
    bad = sum(g.records for c in curves for g in c.gaps)
    if bad:
        first = min(g.first for c in curves for g in c.gaps)
        said.append(f"{bad:,} {'record is' if bad == 1 else 'records are'} not finite, the first at {first:g}.")
    main = [m.label for m in marks if m.role in {"onset", "clean"}]
    if main:
        said.append("Marked: " + "; ".join(main) + ".")
    return " ".join(said)
