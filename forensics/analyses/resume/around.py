"""A restart seen in one metric: its values before, those that were done again, and those after."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf, isfinite, sqrt

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.case.folds import has_folds
from forensics.case.processes.lives import Boundary, rows_of
from forensics.case.processes.starts import Start, starts
from forensics.case.series import metric_rows
from forensics.case.steps import at, only
from forensics.io.columns import owned
from forensics.stats.spread import Floats, median_of, scatter
from forensics.store.run import Run


class Around(Struct, frozen=True):
    """One printed metric around a restart, as metric rows with `at`, in order.

    `before` are those before the step where the new life begins, `replaced` those from there on in the old life, and
    `after` those in the new one.
    """

    before: pl.DataFrame
    replaced: pl.DataFrame
    after: pl.DataFrame


def around(run: Run, boundary: Boundary, name: str) -> Around | None:
    """Compare one canonical metric over a restart, by the printed name with most records on both sides."""
    return run.derived(_Compared(boundary, name))


class _Compared(Struct, frozen=True):
    """One restart in one metric, which several rules ask for."""

    boundary: Boundary
    name: str

    def __call__(self, run: Run) -> Around | None:
        old, new = (rows_of(run, life, self.name) for life in (self.boundary.before, self.boundary.after))
        if not old.height or not new.height:
            return None
        names = pl.concat([old["raw_name"], new["raw_name"]])
        if names.n_unique() > 1:
            shared = set(old["raw_name"].unique()) & set(new["raw_name"].unique())
            raw = next((r for r in names.value_counts(sort=True)["raw_name"].to_list() if r in shared), None)
            if raw is None:
                return None
            old, new = old.filter(pl.col("raw_name") == raw), new.filter(pl.col("raw_name") == raw)
        early = old["at"] < new["at"][0]
        kept = int(early.sum())
        if early.head(kept).all():
            return Around(old.head(kept), old.slice(kept), new)
        return Around(old.filter(early), old.filter(~early), new)


def unnumbered(run: Run) -> Iterator[tuple[Start, Around]]:
    """Give the training loss around each state that a log loads which numbers no steps: `at` counts its records."""
    told = {} if has_folds(run) else {s: own for s, own in starts(run).items() if any(one.resumed for one in own)}
    losses = metric_rows(run, pl.col("source").is_in(sorted(told)) & (pl.col("name") == "loss"))
    rows = losses.filter(pl.col("value_class") == "finite").collect().sort("seq", maintain_order=True) if told else None
    for (source,), own in () if rows is None else rows.group_by("source", maintain_order=True):
        if own.select(at().is_not_null().any()).item() or own.select("rank", "raw_name").n_unique() > 1:
            continue
        counted = own.with_columns(at=pl.int_range(1, pl.len() + 1))
        places = [-1, *(start.seq for start in told[str(source)]), inf]
        for start, (low, seq), (_, end) in zip(told[str(source)], pairwise(places), pairwise(places[1:]), strict=False):
            old, new = (
                counted.filter(pl.col("seq").is_between(*span, closed="left")) for span in ((low, seq), (seq, end))
            )
            if start.resumed and old.height and new.height:
                yield start, Around(old, old.clear(), new)


def paired(seen: Around) -> pl.DataFrame:
    """Steps that both lives did: `at`, `old` by the last record of the old life, `new` by the first, and `delta`."""
    old, new = (only(rows, "at", "value") for rows in (seen.replaced, seen.after))
    old = old.reverse()
    steps, mine, its = np.intersect1d(old["at"].to_numpy(), new["at"].to_numpy(), return_indices=True)
    was, now = (rows["value"].to_numpy()[places] for rows, places in ((old, mine), (new, its)))
    return pl.DataFrame({"at": owned(steps), "old": owned(was), "new": owned(now), "delta": owned(now - was)})


def mean_error(values: pl.Series, *, count: int, steps: pl.Series | None = None) -> float:
    """Standard error of the mean of `count` values of a series that may drift and be autocorrelated.

    The line through the series is taken out (over the logarithm of the steps, where given, for a loss is nearly a line
    there), the rest clipped at three robust deviations, and its lag-one correlation corrected for its bias in short
    series (Marriott and Pope 1954).
    """
    y, n = values.to_numpy(), values.len()
    if not n:
        return 0.0
    x: Floats = np.arange(n, dtype=np.float64)
    if steps is not None:
        x = np.log((steps - min(0, int(steps[0])) + 1).to_numpy().astype(np.float64))
    rest = y - x * _ratio(_product(x, y), _product(x, x))
    rest = rest - median_of(rest)
    sigma = scatter(rest)
    if sigma <= 0:
        sigma = float(rest.std(ddof=1)) if n > 1 else 0.0
    calm = np.clip(rest, -3 * sigma, 3 * sigma)
    one, next_one = calm[:-1], calm[1:]
    rho = _ratio(_product(one, next_one), sqrt(_product(one, one) * _product(next_one, next_one)))
    rho = min(0.95, max(0.0, (n * rho + 1) / (n - 4))) if n > 4 else 0.0
    return sigma * sqrt((1 + rho) / (1 - rho) / max(1, count))


def _product(one: Floats, other: Floats) -> float:
    """Sum of the products of two series, each about its mean."""
    return float((one - one.mean()) @ (other - other.mean())) if len(one) else 0.0


def _ratio(part: float, whole: float) -> float:
    """A finite ratio, or 0 for what cannot be computed (a series of one step, or of equal values)."""
    return part / whole if whole and isfinite(part / whole) else 0.0
