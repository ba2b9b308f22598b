"""The chart of one metric: every series of its name over steps, with what is marked on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.case.joined.stores import counted
from forensics.case.series import keys_of
from forensics.case.steps import SERIES, are_sorted, at, only, parts
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
#: So many records are read for all charts together.
_TOGETHER = 500_000


class Metric(Struct, frozen=True):
    """The rows of one metric that are drawn, a frame for each series; `culprits` are ranks at fault.

    `by_step`: every row has a step.
    """

    name: str
    parts: tuple[pl.DataFrame, ...]
    culprits: frozenset[int]
    by_step: bool


def rows_of_each(run: Run, charts: Sequence[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], pl.DataFrame]]:
    """Give the records of the metrics of each chart in their order, with the step `at` of each.

    Of few records those of all charts are read at once, as each reading has a cost of its own; of many, as they are
    drawn, so that no more than one chart's are held.
    """
    told = [name for names in charts for name in names]
    held = keys_of(run).filter(pl.col("name").is_in(told))["n"].sum()
    every = _rows_of(run, told) if told and held <= _TOGETHER else None
    for names in charts:
        own = _rows_of(run, names) if every is None else every.filter(pl.col("name").cast(pl.String).is_in(names))
        yield names, own


def _rows_of(run: Run, names: Sequence[str]) -> pl.DataFrame:
    rows = counted(run, pl.col("name").is_in(names), coded=True).filter(pl.col("value_class") != "null")
    columns = [*SERIES, "name", "seq", "value", at()]
    told = rows.with_columns(pl.col("attempt").fill_null(0)).select(columns).collect()
    is_one = told["source"].n_unique() == 1 and are_sorted(only(told, "attempt", "seq"))
    return told if is_one else told.sort(pl.col("source").cast(pl.String), "attempt", "seq", maintain_order=True)


def metric_of(name: str, rows: pl.DataFrame, report: Report) -> Metric:
    """Choose the series that are drawn, in the order of the files: those of culprits, then those with most records."""
    by_step = rows["at"].null_count() == 0
    record = pl.col("seq").rank("dense").over("source", "attempt", "rank") - 1  # one axis for unlike intervals
    placed = rows if by_step else rows.with_columns(record=record)
    found = parts(placed, SERIES)
    culprits = frozenset(report.verdict.culprits)
    best = sorted(found, key=lambda p: (p["rank"][0] not in culprits, -p.height))[:_MOST_CURVES]
    shown = tuple(part for part in found if any(part is b for b in best))
    return Metric(name, shown, culprits, by_step)


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
