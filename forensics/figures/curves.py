"""Metrics over steps: the loss and the gradient norm, and every metric that a finding names, with the onset marked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from forensics.analyses.memory.series import series_of
from forensics.analyses.pace.names import pace_name
from forensics.case.joined.stores import counted
from forensics.case.steps import SERIES, at
from forensics.figure import Chart, Curve, Mark
from forensics.figures._marks import inside, step_marks
from forensics.figures._thin import MOST_POINTS, note_of, thinned
from forensics.figures.kind import FigureKind
from forensics.model import Report, Severity
from forensics.store.run import Run

_ALWAYS = ("loss", "grad_norm")
_MOST_CHARTS = 8
_MOST_CURVES = 8
#: A chart around the onset is added when the whole one shows so many times more records.
_ZOOM, _AROUND = 4, 60


def curves(run: Run, report: Report) -> Iterator[Chart]:
    """Give a chart for each metric that matters, and one around the onset where the whole is too wide to show it."""
    named = _named(report)
    marks = step_marks(run, report)
    elsewhere = {*_ALWAYS, *(s.name for s in series_of(run))}
    names = [*_ALWAYS, *(n for n in named if n not in elsewhere and pace_name(n) is None)]
    rows = (
        counted(run, pl.col("name").is_in(names))
        .filter(pl.col("value_class") != "null")
        .with_columns(at(), pl.col("attempt").fill_null(0))
        .sort("source", "attempt", "seq", maintain_order=True)
        .collect()
    )
    have = set(rows["name"].unique().to_list())
    for name in [n for n in names if n in have][:_MOST_CHARTS]:
        own = rows.filter(pl.col("name") == name)
        yield from _charts(name, own, marks, tuple(sorted(named.get(name, ()))), report)


def _named(report: Report) -> dict[str, set[str]]:
    """Metrics that the evidence of findings names, with the rules that named them."""
    found: dict[str, set[str]] = {}
    for finding in report.findings:
        if finding.severity is not Severity.INFO:
            for evidence in finding.evidence:
                if evidence.name:
                    found.setdefault(evidence.name, set()).add(finding.rule)
    return found


def _charts(
    name: str, rows: pl.DataFrame, marks: tuple[Mark, ...], rules: tuple[str, ...], report: Report
) -> Iterator[Chart]:
    by_step = rows["at"].null_count() == 0
    chosen = _chosen(rows, report)
    if not by_step:
        marks = ()
    whole = _chart(name, chosen, marks, rules, by_step=by_step)
    if whole is None:
        return
    yield whole
    onset = next((m.at for m in marks if m.role == "onset"), None)
    if onset is None:
        return
    near = [_around(part, onset) for part in chosen]
    near = [part for part in near if part.height >= 3]
    if near and sum(p.height for p in chosen) >= _ZOOM * sum(p.height for p in near):
        around = _chart(name, near, marks, rules, by_step=True, around=True)
        if around is not None:
            yield around


def _chosen(rows: pl.DataFrame, report: Report) -> list[pl.DataFrame]:
    """The series shown: those of culprits first, then those with most records, in the order of the files."""
    parts = rows.partition_by(*SERIES, maintain_order=True)
    culprits = set(report.verdict.culprits)
    best = sorted(parts, key=lambda p: (p["rank"][0] not in culprits, -p.height))[:_MOST_CURVES]
    return [part for part in parts if any(part is b for b in best)]


def _around(part: pl.DataFrame, onset: float) -> pl.DataFrame:
    index = int((part["at"] < onset).sum())
    return part.slice(max(0, index - _AROUND), 2 * _AROUND)


def _chart(  # noqa: PLR0913 - what is drawn, where, and of which part
    name: str,
    parts: list[pl.DataFrame],
    marks: tuple[Mark, ...],
    rules: tuple[str, ...],
    *,
    by_step: bool,
    around: bool = False,
) -> Chart | None:
    labels = _labels(parts)
    made = tuple(
        _curve(part, label, MOST_POINTS // len(parts), by_step) for part, label in zip(parts, labels, strict=True)
    )
    drawn = tuple(c for c in made if c.x or c.gaps)
    if not drawn:
        return None
    xs = [v for c in drawn for v in (*c.x, *(g.first for g in c.gaps), *(g.last for g in c.gaps))]
    shown = inside(marks, xs)
    return Chart(
        key=f"{name}-around-the-onset" if around else name,
        title=f"{name} around the onset" if around else f"{name} over {'steps' if by_step else 'records'}",
        caption=_caption(name, drawn, shown),
        x_label="step" if by_step else "record",
        y_label=name,
        curves=drawn,
        marks=shown,
        rules=rules,
        log=_wide(drawn),
        note=note_of(drawn),
    )


def _curve(part: pl.DataFrame, label: str, most: int, by_step: bool) -> Curve:  # noqa: FBT001 - which axis there is
    x = part["at"].to_numpy() if by_step else np.arange(part.height)
    y = part["value"].fill_null(float("nan")).to_numpy()
    return thinned(label, x.astype(np.float64), y.astype(np.float64), most)


def _labels(parts: list[pl.DataFrame]) -> list[str]:
    """Name each series by what tells it from the others."""
    heads = [part.row(0, named=True) for part in parts]
    differ = [c for c in SERIES if len({h[c] for h in heads}) > 1] or ["raw_name"]
    told = next(([c] for c in ("rank", "attempt", "raw_name") if len({h[c] for h in heads}) == len(heads)), differ)
    told = told if len(heads) > 1 else ["raw_name"]
    words = {"rank": "rank {}", "attempt": "attempt {}", "source": "{}", "raw_name": "{}"}
    return [", ".join(words[c].format(h[c] if h[c] is not None else "?") for c in told) for h in heads]


def _wide(curves: tuple[Curve, ...]) -> bool:
    """Whether only a logarithmic axis shows both the usual values and the largest."""
    values = [v for c in curves for v in c.y]
    if not values or min(values) <= 0:
        return False
    return max(values) / float(np.median(values)) > 50


def _caption(name: str, curves: tuple[Curve, ...], marks: tuple[Mark, ...]) -> str:
    values = [v for c in curves for v in c.y]
    said = [f"{name} runs from {min(values):.4g} to {max(values):.4g}."] if values else [f"{name} is never finite."]
    bad = sum(g.records for c in curves for g in c.gaps)
    if bad:
        first = min(g.first for c in curves for g in c.gaps)
        said.append(f"{bad:,} {'record is' if bad == 1 else 'records are'} not finite, the first at {first:g}.")
    main = [m.label for m in marks if m.role in {"onset", "clean"}]
    if main:
        said.append("Marked: " + "; ".join(main) + ".")
    return " ".join(said)


FIGURES = FigureKind(20, curves)
