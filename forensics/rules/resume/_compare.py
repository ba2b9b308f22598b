"""A restart seen in one metric: its values before, those that were done again, and those after."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

import polars as pl

from forensics.analyses.rl.levels import median
from forensics.case.attempts import attempts
from forensics.case.evidence import metric_evidence
from forensics.case.lives import Boundary, rows_of
from forensics.case.starts import Start
from forensics.model import Evidence, EvidenceRole, Locator, Onset
from forensics.store.run import Run

_MAD_TO_SIGMA = 1.4826


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
        shared = set(old["raw_name"].unique()) & set(new["raw_name"].unique())
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
    sigma = _MAD_TO_SIGMA * median(rest.abs())
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


def evidence_of(run: Run, seen: Around, boundary: Boundary) -> tuple[Evidence, ...]:
    """The first value after the restart, the last before it, and the line that says what was loaded."""
    after = metric_evidence(seen.after.row(0, named=True))
    old = seen.before if seen.before.height else seen.replaced
    before = [metric_evidence(old.row(-1, named=True), EvidenceRole.RELATED)] if old.height else []
    return (after, *before, *loaded(run, boundary))


def begun(run: Run, boundary: Boundary) -> Start | None:
    """What says that the process of the new life began, in any store of the run."""
    return attempts(run).start_of(boundary.after)


def loaded_step(run: Run, boundary: Boundary) -> int | None:
    """The step of the checkpoint that the new life says it loaded."""
    start = begun(run, boundary)
    return None if start is None else start.step


def settled(values: pl.Series, *, count: int) -> float:
    """Standard error of the mean of `count` values where a series has settled: in its second half.

    The fall of the first half is no noise; taken for it, a run of a few dozen records could never lose anything.
    """
    return mean_error(values.tail(max(2 * count, values.len() // 2)), count=count)


def loaded(run: Run, boundary: Boundary) -> tuple[Evidence, ...]:
    """Evidence of the checkpoint that the new life says it loaded; empty when it says nothing."""
    start = begun(run, boundary)
    if start is None or not start.resumed:
        return ()
    said = f"resumed from step {start.step}" if start.step is not None else "resumed"
    quote = start.quote or (f"{said}: {start.path}" if start.path else said)
    where = Locator(line=start.line, byte=start.byte)
    return (Evidence(start.source, where, quote, step=start.step, t_ns=start.t_ns, role=EvidenceRole.RELATED),)


def onset(boundary: Boundary) -> Onset:
    """The first step of the new life."""
    after = boundary.after
    return Onset(step=after.first, t_ns=after.t_first, rank=after.rank)


def initial(seen: Around, *, count: int, skip: int = 0) -> float:
    """The level of a metric when its old life began: the median of `count` of its values after the first `skip`."""
    return median(pl.concat([seen.before["value"], seen.replaced["value"]]).slice(skip, count))
