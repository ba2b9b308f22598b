"""Two series on one step axis: where they agree to the last digit printed, and where they do not."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.case.joined._fit import Line
from forensics.case.joined._strands import Strand

#: Of the values that both hold at one step, this share is equal in two copies of one metric.
_EQUAL = 0.9
#: Of the records of the one, this share has no partner at most, or it holds something of its own.
_ALONE = 0.05
_FLOAT32 = 2.0**-23  # a value stored as float32 and read back as float64 is off by half of this, relatively


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Two series compared: `aligned` records at one step, `equal` of them agree.

    `clashes` are the others (columns `at`, `seq_a`, `seq_b`, `finite` whether both are numbers). `distinct` counts the
    different values among the equal ones, `first` holds the `seq` of the first of them in both. `parted`: they agree up
    to a step, and never from the next one on. `covers_b`: everything `b` holds stands in `a` too; `covers_a` the
    reverse.
    """

    a: Strand
    b: Strand
    aligned: int
    equal: int
    distinct: int
    first: tuple[int, int]
    clashes: pl.DataFrame
    parted: bool
    covers_a: bool
    covers_b: bool

    @property
    def same(self) -> bool:
        """Whether both are the same metric."""
        mixed = self.clashes.height - int(self.clashes["finite"].sum())
        return self.equal > 0 and (self.equal >= _EQUAL * (self.aligned - mixed) or self.parted)


def compare(a: Strand, b: Strand, line: Line) -> Match:
    """Align `b` with `a` by a line and compare their values; the n-th record of a step has the n-th as its partner."""
    own = _placed(a, pl.col("at").cast(pl.Float64), "a")
    other = _placed(b, pl.col("at") * line.factor + line.offset, "b")
    both = own.join(other, on=["x", "nth"], how="inner").sort("seq_a")
    both = both.with_columns(finite=pl.col("bad_a").is_null() & pl.col("bad_b").is_null())
    off = (pl.col("value_a") - pl.col("value_b")).abs()
    equal = pl.when("finite").then(off <= _tolerance(a, b)).otherwise(pl.col("bad_a").eq_missing(pl.col("bad_b")))
    both = both.with_columns(equal=equal)
    agreed, clashes = both.filter("equal"), both.filter(~pl.col("equal"))
    hidden = set(clashes.filter(~pl.col("finite") & pl.col("bad_a").is_null())["seq_b"].to_list())
    shown = set(clashes.filter(~pl.col("finite") & pl.col("bad_b").is_null())["seq_a"].to_list())
    return Match(
        a=a,
        b=b,
        aligned=both.height,
        equal=agreed.height,
        distinct=agreed["value_a"].n_unique(),
        first=agreed.select("seq_a", "seq_b").row(0) if agreed.height else (0, 0),
        clashes=clashes.select(pl.col("x").alias("at"), "seq_a", "seq_b", "finite"),
        parted=_parted(both),
        covers_a=not shown and _covered(own, other) and (b.numbered or not a.numbered),
        covers_b=not hidden and _covered(other, own) and (a.numbered or not b.numbered),
    )


def _placed(strand: Strand, x: pl.Expr, side: str) -> pl.DataFrame:
    frame = pl.DataFrame({"at": strand.at, "value": strand.value, "bad": strand.bad, "seq": strand.seq})
    placed = frame.select(x.round(6).alias("x"), "value", "bad", "seq")
    names = {name: f"{name}_{side}" for name in ("value", "bad", "seq")}
    rising = bool((placed["x"].diff().drop_nulls() > 0).all())  # far cheaper than to number the records of each step
    nth = pl.lit(0, dtype=pl.Int64) if rising else pl.int_range(pl.len()).over("x")
    return placed.with_columns(nth=nth).rename(names)


def _tolerance(a: Strand, b: Strand) -> pl.Expr:
    """Half of the last place that the coarser store prints, and the rounding of a float32."""
    size = pl.max_horizontal(pl.col("value_a").abs(), pl.col("value_b").abs())
    decimals, digits = min(a.decimals, b.decimals), min(a.digits, b.digits)
    place = pl.lit(0.5 * 10.0**-decimals)
    if digits >= 3:
        leading = size.clip(1e-300).log10().floor()
        place = pl.max_horizontal(place, 0.5 * pl.lit(10.0).pow(leading + 1 - digits))
    return place * 1.001 + size * _FLOAT32


def _parted(both: pl.DataFrame) -> bool:
    """Whether two series agree for a while and never again: from there on they are two things."""
    known = both.filter("finite")["equal"]
    parted = known.arg_min() if known.len() and not known.all() else None
    if parted is None:
        return False
    tail = known.len() - parted
    return parted >= 5 and tail >= 5 and not known.tail(tail).any()


def _covered(rows: pl.DataFrame, by: pl.DataFrame) -> bool:
    """Whether nearly every record has a partner, and those without one lie between records of the other, finite."""
    alone = rows.join(by.select("x", "nth"), on=["x", "nth"], how="anti")
    if not alone.height:
        return True
    low, high = by["x"].min(), by["x"].max()
    bad = pl.col("bad_a" if "bad_a" in alone.columns else "bad_b")
    inside = alone.filter(pl.col("x").is_between(low, high) & bad.is_null())
    return inside.height == alone.height <= _ALONE * rows.height
