"""The table of healthy ranges and red flags (`ranges.tsv`, each row with its source), and how a row is judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import polars as pl

from forensics.analyses.rl.levels import median, onset_of, running_median, spread_of, stay_of, trend_of
from forensics.analyses.rl.series import RlSeries


@dataclass(frozen=True, slots=True)
class Persistence:
    """How long a state must last before it is one: no single point ever is.

    `window` records make a running median, which must be beyond the bound in a share `held` of the last `last` records;
    measured on seeded noise, this fires on less than 1 % of healthy series, any single point beyond the bound on more
    than a third. `trend_z` is the z of Kendall's test over equal parts from which a trend is taken for proven.
    """

    window: int = 10
    last: int = 20
    held: float = 0.8
    most: float = 0.5
    trend_z: float = 4.0


@dataclass(frozen=True, slots=True)
class Range:
    """One row of the table; `lo`, `hi` bound the healthy range and `op` with `red` is the red flag."""

    row: str
    quantity: str
    lo: float | None
    hi: float | None
    op: str
    red: float | None
    from_step: int
    test: str
    rule: str
    meaning: str
    likely: tuple[str, ...]
    next: tuple[str, ...]
    source: str

    def beyond(self, values: pl.Series) -> pl.Series:
        """Which values raise the red flag."""
        bound = 0.0 if self.red is None else self.red
        if self.op == "==":
            return values.abs() <= max(abs(bound), 1.0) * 1e-9 if not bound else values == bound
        return {">": values > bound, ">=": values >= bound, "<": values < bound}.get(self.op, values.is_null())

    def outside(self, values: pl.Series) -> pl.Series:
        """Which values are outside the healthy range."""
        low = values < (self.lo if self.lo is not None else float("-inf"))
        return low | (values > (self.hi if self.hi is not None else float("inf")))

    @property
    def healthy(self) -> str:
        """The healthy range in words; empty when the row has none."""
        if self.lo is None:
            return "" if self.hi is None else f"at most {self.hi:g}"
        return f"at least {self.lo:g}" if self.hi is None else f"{self.lo:g} to {self.hi:g}"


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that holds of a series: whether red, since which of the finite rows, and the levels at start and end."""

    row: Range
    series: RlSeries
    rows: pl.DataFrame
    red: bool
    onset: int
    first: float
    last: float
    share: float


@cache
def ranges() -> tuple[Range, ...]:
    """All rows of `ranges.tsv`, in its order."""
    text = (files("forensics.rules.rl") / "ranges.tsv").read_text(encoding="utf-8")
    return tuple(_range(line.split("\t")) for line in text.splitlines() if line and not line.startswith("#"))


def range_of(row: str) -> Range:
    """One row by its name.

    Raises:
        KeyError: for a row that the table does not have.
    """
    found = {r.row: r for r in ranges()}
    return found[row]


def _range(cells: list[str]) -> Range:
    row, quantity, low, high, op, red, start, test, rule, meaning, likely, after, source = cells
    return Range(
        row=row,
        quantity=quantity,
        lo=float(low) if low else None,
        hi=float(high) if high else None,
        op=op,
        red=float(red) if red else None,
        from_step=int(start or 0),
        test=test,
        rule=rule,
        meaning=meaning,
        likely=tuple(likely.split("|")),
        next=tuple(after.split("|")),
        source=source,
    )


def judge(series: RlSeries, row: Range, cfg: Persistence) -> Hit | None:
    """Judge a series by a row of the table; None when it is healthy or shorter than the row's test needs."""
    rows = series.finite
    values = rows["value"]
    if rows.height < cfg.last or _last_step(rows) <= row.from_step:
        return None
    if row.test in {"rise", "fall"}:
        return _trending(series, row, cfg)
    if row.test == "spread":
        half = values.tail(values.len() // 2)
        wide = half.len() >= cfg.last and spread_of(half) > (row.red or 0.0)
        return _hit(series, row, values.len() - half.len(), red=True, share=1.0) if wide else None
    medians = running_median(values, 1 if row.test in {"all", "share"} else cfg.window)
    for red in (True, False):
        held = row.beyond(medians) if red else row.outside(medians)
        raw = row.beyond(values) if red else row.outside(values)
        stay = stay_of(held, last=cfg.last)
        if stay.share >= {"all": 1.0, "share": cfg.most}.get(row.test, cfg.held):
            onset = stay.onset if row.test == "all" else onset_of(raw, held, last=cfg.last, window=cfg.window)
            return _hit(series, row, onset, red=red, share=stay.share)
    return None


def _trending(series: RlSeries, row: Range, cfg: Persistence) -> Hit | None:
    """A trend in the wrong direction over the last half of the series."""
    values = series.finite["value"]
    half = values.tail(values.len() // 2)
    trend = trend_of(half)
    if trend is None or half.len() < 2 * cfg.last:
        return None
    signed = trend.z if row.test == "rise" else -trend.z
    if signed < cfg.trend_z or abs(trend.last - trend.first) < 2 * trend.noise:
        return None
    return _hit(series, row, values.len() - half.len(), red=True, share=abs(trend.tau))


def _hit(series: RlSeries, row: Range, onset: int, *, red: bool, share: float) -> Hit:
    rows = series.finite
    fifth = max(1, rows.height // 5)
    first, last = median(rows["value"].head(fifth)), median(rows["value"].tail(fifth))
    return Hit(row, series, rows, red, min(onset, rows.height - 1), first, last, share)


def _last_step(rows: pl.DataFrame) -> float:
    last = rows["at"].max()
    return float(last) if isinstance(last, int) else float(rows.height)
