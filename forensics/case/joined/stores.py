"""One run, many stores: which series of a log, an event file, W&B and tables are one and the same metric.

Two files of one process are linked when a measured metric (a loss, a gradient norm) has the same values in both, at the
same wall time where both print one. Their steps need not be the same: a factor and an offset are fitted. Ranks, runs of
a sweep and processes stay apart. What a kept store holds too is left out of `counted`, so that no rule judges it twice;
a store that reaches further, is denser, or alone holds a NaN is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

import polars as pl
from msgspec import Struct

from forensics.case.joined._candidates import candidates
from forensics.case.joined._fit import Line, fit
from forensics.case.joined._strands import (
    Strand,
    Strands,
    Unit,
    is_core,
    is_measured,
    keeps_console,
    kind_of,
    strands,
)
from forensics.case.series import metric_records, metric_rows, record_pieces
from forensics.store.run import Run, derived

__all__ = [
    "Line",
    "Link",
    "Match",
    "Stores",
    "Strand",
    "counted",
    "counted_record_pieces",
    "counted_records",
    "kind_of",
    "stores_of",
]

#: So many pairs of files are compared at most, the longest first.
_PAIRS = 200
#: So many pairs of their series, the longest first.
_SERIES = 200
_DISTINCT = 5


# Two series on one step axis: where they agree to the last digit printed, and where they do not.

#: Of the values that both hold at one step, this share is equal in two copies of one metric.
_EQUAL = 0.9
#: Of the records of the one, this share has no partner at most, or it holds something of its own.
_ALONE = 0.05
_FLOAT32 = 2.0**-23  # a value stored as float32 and read back as float64 is off by half of this, relatively


class Match(Struct, frozen=True, eq=False):
    """Two series compared: `aligned` records at one step, `equal` of them agree.

    `clashes` are the others (columns `at`, `seq_a`, `seq_b`, `finite` whether both are numbers). `distinct` counts the
    different values among the equal ones, `first` holds the `seq` of the first of them in both. `parted`: they agree up
    to a step, and never from the next one on. `covers_b`: `a` holds everything that `b` holds; `covers_a` the reverse.
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
    """Whether nearly every record has a partner, and those without one are between records of the other, finite."""
    alone = rows.join(by.select("x", "nth"), on=["x", "nth"], how="anti")
    if not alone.height:
        return True
    low, high = by["x"].min(), by["x"].max()
    bad = pl.col("bad_a" if "bad_a" in alone.columns else "bad_b")
    inside = alone.filter(pl.col("x").is_between(low, high) & bad.is_null())
    return inside.height == alone.height <= _ALONE * rows.height


class Link(Struct, frozen=True, eq=False):
    """Two files (source, attempt, rank) that one process wrote, and how their steps and metrics fit together."""

    a: Unit
    b: Unit
    line: Line
    matches: tuple[Match, ...]

    @property
    def same(self) -> tuple[Match, ...]:
        """The metrics that are the same in both."""
        return tuple(m for m in self.matches if m.same)


class Stores(Struct, frozen=True, eq=False):
    """What several stores of a run share; `left_out` are the series (columns `SERIES`) that another one repeats."""

    links: tuple[Link, ...]
    left_out: pl.DataFrame


@derived
def stores_of(run: Run) -> Stores:
    """Find the stores of one run that hold the same metrics; computed once for each run."""
    found = strands(run)
    own: dict[Unit, list[Strand]] = {}

    def of(unit: Unit) -> list[Strand]:
        return own[unit] if unit in own else own.setdefault(unit, found.of(unit))

    links: list[Link] = []
    gone: dict[Unit, list[Strand]] = {}
    standing = ((a, b) for a, b in candidates(found.units, gone) if b not in gone)
    for a, b in islice(standing, _PAIRS):
        if (link := _link(of(a), of(b))) is not None:
            links.append(link)
            gone |= dict(_repeated(link, found, {unit[0] for unit in gone}))
    for unit in found.units:
        if keeps_console(unit[0]) and unit not in gone and (link := _link(of(unit), of(unit))) is not None:
            links.append(link)
            gone[unit] = list(_printed_again(link))
    return Stores(tuple(links), _keys(strand for many in gone.values() for strand in many))


def counted(run: Run, where: pl.Expr | None = None, *, coded: bool = False) -> pl.LazyFrame:
    """Metric rows of a run without the series that another store holds too, in their order.

    `where` chooses series, by the columns of `case.series.keys_of`; `coded` as in `case.series.metric_rows`.
    """
    chosen = pl.lit(value=True) if where is None else where
    return metric_rows(run, chosen, without=stores_of(run).left_out, coded=coded)


def counted_records(run: Run) -> pl.LazyFrame:
    """Give the records of `counted` rows, as `case.series.metric_records` has them."""
    return metric_records(run, without=stores_of(run).left_out)


def counted_record_pieces(run: Run, *, inner: bool = True) -> Iterator[pl.LazyFrame]:
    """Give the same some at a time, as `case.series.record_pieces` does."""
    return record_pieces(run, without=stores_of(run).left_out, inner=inner)


def _link(a: Sequence[Strand], b: Sequence[Strand]) -> Link | None:
    """Link two files by the longest measured metric that has the same values in both."""
    pairs = [(x, y) for x in a for y in b if x.name == y.name and (a is not b or x.raw_name < y.raw_name)]
    known = sorted((p for p in pairs if is_measured(p[0].name)), key=lambda p: -min(len(p[0]), len(p[1])))
    for x, y in known[:4]:
        line = fit(x, y)
        if line is None:
            continue
        found = compare(x, y, line)
        if found.same and found.distinct >= _DISTINCT and 2 * found.aligned >= _overlap(x, y, line):
            matches = tuple(compare(*pair, line) for pair in sorted(pairs, key=lambda p: -len(p[0]))[:_SERIES])
            return Link(x.unit, y.unit, line, matches)
    return None


def _overlap(a: Strand, b: Strand, line: Line) -> int:
    """Records of the sparser series in the range of steps that both have."""
    placed = b.at.cast(pl.Float64) * line.factor + line.offset
    own = a.at.cast(pl.Float64)
    shared = own.is_between(placed.min(), placed.max()), placed.is_between(own.min(), own.max())
    return min(int(inside.sum()) for inside in shared)


def _repeated(link: Link, found: Strands, left_out: Collection[str]) -> Iterator[tuple[Unit, list[Strand]]]:
    """The file of a link that need not be judged, with its series that the other one holds.

    A source that is `left_out` in another attempt comes first, so that all attempts are read from one store and a
    restart is seen between them; else the worse store does. Attempts of a source that trained one beginning
    twice stay where the other store holds it once: its values are those of each attempt.
    """
    sides = ((link.b, link.a), (link.a, link.b))
    for unit, keeper in sorted(sides, key=lambda side: side[0][0] not in left_out):
        second = unit == link.b
        pairs = [(m.b, m.covers_b) if second else (m.a, m.covers_a) for m in link.same if not m.parted]
        held = [strand for strand, covered in pairs if covered]
        core = {s.raw_name for s in found.units[unit] if is_core(s.name)}
        whole = unit not in found.alone and core <= {s.raw_name for s in held}
        hides_a_restart = unit in found.anew and keeper not in found.anew
        if held and whole and not hides_a_restart and not _one_of_ranks(keeper, unit, found.units):
            yield unit, held
            return


def _one_of_ranks(keeper: Unit, unit: Unit, every: Iterable[Unit]) -> bool:
    """Whether leaving a file out for one that names no rank would hide one of several ranks."""
    return unit[2] is not None and keeper[2] is None and len({rank for _, _, rank in every} - {None}) > 1


def _printed_again(link: Link) -> Iterator[Strand]:
    """Series of one file that print again what another one of it holds, with fewer digits where they differ in that."""
    gone: set[str] = set()
    for m in (m for m in link.same if not m.parted):
        ways = [(m.a, m.b, m.covers_b), (m.b, m.a, m.covers_a)]
        for keeper, other, covers in sorted(ways, key=lambda way: -way[0].digits):
            if covers and keeper.raw_name not in gone and other.raw_name not in gone:
                gone.add(other.raw_name)
                yield other


def _keys(strands_: Iterable[Strand]) -> pl.DataFrame:
    keys = [(s.source, s.attempt, s.rank, s.raw_name) for s in strands_]
    types = {"source": pl.String, "attempt": pl.Int32, "rank": pl.Int32, "raw_name": pl.String}
    return pl.DataFrame(keys, schema=types, orient="row").unique(maintain_order=True)
