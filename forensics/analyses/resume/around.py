"""A restart seen in one metric: its values before, those that were done again, and those after."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

import polars as pl

from forensics.case.lives import Boundary, rows_of
from forensics.stats.spread import MAD_TO_SIGMA, median
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Around:
    """One printed metric around a restart: `before` the step where the new life begins, `replaced` from there on in the
    old life, and `after` in the new one. All are metric rows with `at`, in order.
    """  # noqa: D205 - one sentence over two lines

    before: pl.DataFrame
    replaced: pl.DataFrame
    after: pl.DataFrame


def around(run: Run, boundary: Boundary, name: str) -> Around | None:
    """Compare one canonical metric over a restart, by the printed name with most records on both sides."""
    return run.derived(_Compared(boundary, name))


@dataclass(frozen=True, slots=True)
class _Compared:
    """One restart in one metric, which several rules ask for."""

    boundary: Boundary
    name: str

    def __call__(self, run: Run) -> Around | None:
        old, new = (rows_of(run, life, self.name) for life in (self.boundary.before, self.boundary.after))
        shared = set(old["raw_name"].unique()) & set(new["raw_name"].unique()) if old.height and new.height else None
        if not shared:
            return None
        counted = pl.concat([old["raw_name"], new["raw_name"]]).value_counts(sort=True)
        if counted.height > 1:
            raw = next(r for r in counted["raw_name"].to_list() if r in shared)
            old, new = old.filter(pl.col("raw_name") == raw), new.filter(pl.col("raw_name") == raw)
        start = new["at"][0]
        return Around(old.filter(pl.col("at") < start), old.filter(pl.col("at") >= start), new)


def paired(seen: Around) -> pl.DataFrame:
    """Steps that both lives did: columns `at`, `old`, `new`, `delta`."""
    old = seen.replaced.unique("at", keep="last", maintain_order=True).select("at", old="value")
    new = seen.after.unique("at", keep="first", maintain_order=True).select("at", new="value")
    return old.join(new, on="at", how="inner").sort("at").with_columns(delta=pl.col("new") - pl.col("old"))


def mean_error(values: pl.Series, *, count: int, steps: pl.Series | None = None) -> float:
    """Standard error of the mean of `count` values of a series that may drift and be autocorrelated.

    The line through the series is taken out (over the logarithm of the steps, where given, for a loss is nearly a line
    there), the rest clipped at three robust deviations, and its lag-one correlation corrected for its bias in short
    series (Marriott and Pope 1954).
    """
    places = pl.int_range(values.len(), eager=True) if steps is None else (steps - min(0, int(steps[0])) + 1).log()
    frame = pl.DataFrame({"y": values, "x": places.cast(pl.Float64)})
    slope = _known(frame.select(pl.cov("x", "y") / pl.col("x").var()).item())
    frame = frame if slope else frame.with_columns(x=pl.lit(0.0))
    rest = frame.select(pl.col("y") - pl.col("x") * slope)["y"]
    rest = rest - median(rest)
    sigma = MAD_TO_SIGMA * median(rest.abs())
    if sigma <= 0:
        sigma = float(rest.std() or 0.0)  # type: ignore[arg-type] - a column of floats
    calm = rest.clip(-3 * sigma, 3 * sigma)
    n = calm.len()
    rho = pl.DataFrame({"a": calm, "b": calm.shift(1)}).drop_nulls().select(pl.corr("a", "b")).item()
    rho = min(0.95, max(0.0, (n * _known(rho) + 1) / (n - 4))) if n > 4 else 0.0
    return sigma * sqrt((1 + rho) / (1 - rho) / max(1, count))


def _known(value: object) -> float:
    """A finite number, or 0 for what cannot be computed (a series of one step, or of equal values)."""
    return value if isinstance(value, float) and isfinite(value) else 0.0
