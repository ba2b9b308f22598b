"""Where numbers stop being finite: which metrics are watched, and how each series of them runs.

A loss, its parts and the gradient norm are watched. Timings, scores of empty classes, spreads of one sample and
evaluation tables are NaN by design in healthy runs, so they are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from forensics.case.evidence import Row
from forensics.case.joined.stores import counted, stores_of
from forensics.case.series import PIECE_RECORDS, Index, RowNumbers, chosen, compact, index_of, keys_of, whole
from forensics.case.steps import SERIES, WRITER, by_record, step_of
from forensics.knowledge.metrics import telling, with_role
from forensics.store.packed import Packed
from forensics.store.run import Run, derived
from forensics.store.schema import TABLES
from forensics.values import replace

_COUNTS = {"n_bad": pl.Int64, "n_before": pl.Int64, "n_after": pl.Int64, "n_tail": pl.Int64}
BAD_CLASSES = ("nan", "+inf", "-inf", "null-suspected-nan", "filtered-by-writer")
#: Classes of what is no number.
NO_VALUE = ("null", "null-suspected-nan")


def role() -> pl.Expr:
    """What a metric is to a NaN search: `loss`, `grad_norm`, `eval` (held-out loss), `part` (of the loss), or null."""
    found = pl.lit(None, pl.String)
    for row in reversed(with_role()):
        found = pl.when(_is(row.names) & ~_is(row.but)).then(pl.lit(row.role)).otherwise(found)
    return found.alias("role")


def _is(pattern: str) -> pl.Expr:
    """Whether the whole name of a metric fits a pattern; an empty one fits none."""
    return pl.col("name").str.contains(f"^(?:{pattern})$") if pattern else pl.lit(value=False)


class Watched(Struct, frozen=True, eq=False):
    """Metric rows in the order of their records, by their places: a column is made where it is asked for.

    Columns are those of the table, `role`, `at` and `bad`. With all of them a million rows take 110 MB.
    """

    table: Packed
    roles: pl.Series
    places: NDArray[np.uint32]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.places)

    @overload
    def __getitem__(self, what: str) -> pl.Series: ...
    @overload
    def __getitem__(self, what: slice) -> Watched: ...
    def __getitem__(self, what: str | slice) -> pl.Series | Watched:
        """Give one column, or some of the rows."""
        return self._column(what) if isinstance(what, str) else replace(self, places=self.places[what])

    def _column(self, name: str) -> pl.Series:
        if name == "role":
            return self.roles[self.table.code_of(self.places)]
        if name == "bad":
            return self._column("value_class").is_in(BAD_CLASSES)
        if name == "at":
            return self.table.steps(self.places).cast(pl.Int64)
        column, kind = self.table.short(name, self.places), TABLES["metrics"][name]
        column = column if kind == pl.String else column.cast(kind)  # texts are categories
        return column.fill_null(0) if name == "attempt" else column

    def frame(self, *names: str) -> pl.DataFrame:
        """Give some columns, or all."""
        return pl.DataFrame(
            [self._column(name).alias(name) for name in names or (*TABLES["metrics"], "role", "at", "bad")]
        )

    def row(self, index: int) -> Row:
        """Give one row, with its step."""
        row = self.table.row(int(self.places[index]))
        return {**row, "attempt": row["attempt"] or 0, "at": step_of(row)}

    def filter(self, *where: pl.Expr) -> Watched:
        """Give the rows that fit, each asked by itself; only what is asked of them is made, of some at a time."""
        asked = {name for one in where for name in one.meta.root_names()}
        fits = pl.all_horizontal(where).fill_null(value=False)
        kept = [one.places[one.frame(*asked).select(fits).to_series().to_numpy()] for one in self.pieces()]
        if sum(map(len, kept)) == len(self):
            return self
        return replace(self, places=kept[0] if len(kept) == 1 else np.concatenate(kept))

    def count(self, *names: str) -> pl.DataFrame:
        """Count the rows that have the same in some columns, as `len`, in the order of their first ones."""
        counts = [one.frame(*names).group_by(*names, maintain_order=True).len() for one in self.pieces()]
        return pl.concat(counts).group_by(*names, maintain_order=True).agg(pl.col("len").sum())

    def pieces(self) -> Iterator[Watched]:
        """Give the rows in their order, some at a time."""
        return (self[first : first + PIECE_RECORDS] for first in range(0, max(len(self), 1), PIECE_RECORDS))

    def highest(self, name: str) -> Watched:
        """Give the rows in which a column is as high as in any."""
        top = self._column(name).max()
        return self[:0] if top is None else self.filter(pl.col(name) == top)

    def of(self, one: Row) -> Watched:
        """Give the rows of the series of one of them."""
        return self.filter(*(pl.col(name).eq_missing(pl.lit(one[name])) for name in SERIES))


def watched(run: Run, *, every: bool = False) -> Watched:
    """Rows of watched metrics, in record order; rows that hold no number are left out.

    With `every`, also those of series that another store of the run holds too. They are asked for only where something
    is not finite.
    """
    same = not every or not stores_of(run).left_out.height
    rows = _watched(run) if same else _watched_in_every_store(run)
    return Watched(index_of(run).table, _roles_of_names(run), whole(rows))


def watched_of(run: Run, own: Sequence[int]) -> Watched:
    """Give the rows of some series, by their numbers in the index."""
    index = index_of(run)
    return Watched(index.table, _roles_of_names(run), index.records(own))


@derived
def _roles_of_names(run: Run) -> pl.Series:
    return index_of(run).table.names.select(role().cast(pl.Categorical())).to_series()


@derived
def watched_series(run: Run) -> pl.DataFrame:
    """Give the series of watched metrics, as `series_of` has them."""
    roles: dict[str, str] = dict(_roles(run).iter_rows())
    return series_of(run, pl.col("name").is_in([*roles]), roles)


def series_of(run: Run, where: pl.Expr, roles: Mapping[str, str]) -> pl.DataFrame:
    """One row for each series of some metrics, in the order of their first records, from the index alone.

    Columns: the series' key, `role`, `n` records, `n_bad`, `n_before` (finite records before the first bad one) and
    `n_after` (after the last bad one), both null where no record is bad, `n_tail` bad ones in a row up to the last of
    them, `last`, the last value, and `own`, the numbers of the series in the index.
    """
    index = index_of(run)
    wanted = chosen(index, where, stores_of(run).left_out)
    groups: dict[tuple[Any, ...], list[int]] = {}
    keys = index.keys.select(SERIES[0], pl.col("attempt").fill_null(0), *SERIES[2:]).rows()
    for i in np.flatnonzero(wanted).tolist():
        groups.setdefault(keys[i], []).append(i)
    table, names = index.table, index.keys["name"]
    found: list[tuple[tuple[int, int], tuple[Any, ...]]] = []
    for key, own in groups.items():
        rows = index.records(own)
        if not len(rows):
            continue
        at = int(rows[0])
        first = table.value("name", at) if len(own) > 1 else names[own[0]]
        last, seq = table.value("value", int(rows[-1])), table.value("seq", at)
        place = -1 if seq is None else int(seq), at
        found.append((place, (*key, roles.get(first), len(rows), *_bad(index, own, rows), last, own)))
    types = {name: index.keys.schema[name] for name in SERIES}
    schema = {**types, "role": pl.String, "n": pl.Int64, **_COUNTS, "last": pl.Float64, "own": pl.List(pl.UInt32)}
    return pl.DataFrame([row for _, row in sorted(found, key=lambda one: one[0])], schema=schema, orient="row")


def _bad(index: Index, own: list[int], rows: NDArray[np.uint32]) -> tuple[int, int | None, int | None, int]:
    """How many records are bad, how many precede the first and follow the last of them, and the longest row of them."""
    if index.is_finite(own):
        return 0, None, None, 0
    classes = index.table.short("value_class", rows)
    bad = np.flatnonzero(classes.is_in(BAD_CLASSES).to_numpy())
    if not len(bad):
        return 0, None, None, 0
    tail = len(bad) - int(np.flatnonzero(np.diff(bad, prepend=-2) != 1)[-1])
    return len(bad), int(bad[0]), len(rows) - 1 - int(bad[-1]), tail


def _roles(run: Run) -> pl.DataFrame:
    """The names of watched metrics, with their `role`."""
    names = keys_of(run).select(pl.col("name").unique(maintain_order=True)).with_columns(role())
    return names.filter(pl.col("role").is_not_null())


@derived
def _watched(run: Run) -> RowNumbers:
    return _rows(run, stores_of(run).left_out)


@derived
def _watched_in_every_store(run: Run) -> RowNumbers:
    return _rows(run, None)


def _rows(run: Run, left_out: pl.DataFrame | None) -> RowNumbers:
    of_role, index = pl.col("name").is_in(_roles(run)["name"].to_list()), index_of(run)
    own = np.flatnonzero(chosen(index, of_role, left_out)).tolist()
    return compact(index.records(own), index.table)


#: Tables of text have no word for a NaN that every writer uses: the `to_csv` of pandas leaves its cell empty.
_TABLES = r"\.[ct]sv$"


def vanished(run: Run) -> pl.DataFrame:
    """First record of each stretch at a series' end that still counts steps but tells no loss any more.

    Trainers that print their loss scale or skip counter beside the loss drop a loss that is not a positive number.
    Writers that cannot store NaN leave an empty loss (null, or a cell of a table) beside what only training records
    hold. Columns: a metrics row with `at`, the empty loss where there is one, and `n_lost` records without a loss.
    """
    keys, of_loss, source = keys_of(run), pl.col("name") == "loss", pl.col("source").cast(pl.String)
    is_told_empty = of_loss & ((pl.col("n_null") > 0) | source.str.contains(_TABLES))
    emptied = source.is_in(keys.filter(is_told_empty).select(source.unique()).to_series().to_list())
    beside = pl.col("name").str.contains(telling("beside_loss"))
    beside |= emptied & pl.col("name").str.contains(telling("with_loss"))
    if not _outlived(index_of(run), keys.select(of_loss).to_series(), keys.select(beside).to_series()):
        return pl.DataFrame(schema={**TABLES["metrics"], "at": pl.Int64, "n_lost": pl.UInt32})
    return _ends_without_loss(by_record(counted(run, of_loss | beside)).collect())


def _outlived(index: Index, of_loss: pl.Series, beside: pl.Series) -> bool:
    """Whether a series beside a loss has a later record than it: else no row has to be looked at."""
    last_loss: dict[tuple[Any, ...], int] = {}
    stretches = index.keys.select("source", "attempt", "rank").rows()
    for i in np.flatnonzero(of_loss.to_numpy()).tolist():
        last_loss[stretches[i]] = max(last_loss.get(stretches[i], -1), _last_seq(index, i))
    later = (i for i in np.flatnonzero(beside.to_numpy()).tolist() if stretches[i] in last_loss)
    return any(_last_seq(index, i) > last_loss[stretches[i]] for i in later)


def _last_seq(index: Index, series: int) -> int:
    rows = index.records([series])
    seq = index.table.value("seq", int(rows[-1])) if len(rows) else None
    return -1 if seq is None else int(seq)


def _ends_without_loss(rows: pl.DataFrame) -> pl.DataFrame:
    """The first record behind the last loss of each stretch, of rows of losses and of what stands beside them."""
    key, of_loss = WRITER, pl.col("name") == "loss"
    rows = rows.with_columns(
        (kind & (pl.col("value_class") != "null")).any().over(*key, "seq").alias(name)
        for name, kind in (("told", of_loss), ("accompanied", ~of_loss))
    )
    were_together = (pl.col("told") & pl.col("accompanied")).any().over(key)
    last = pl.col("seq").filter("told").max().over(key)
    ends = rows.filter(~pl.col("told") & were_together & (pl.col("seq") > last))
    ends = ends.filter(of_loss | ~of_loss.any().over(key))  # an empty loss says more than its neighbours
    found = ends.with_columns(n_lost=pl.col("seq").n_unique().over(key)).unique(key, keep="first", maintain_order=True)
    gaps = _gaps(rows, key)
    found = found.filter("accompanied").join(gaps, on=[*key], how="left", nulls_equal=True, maintain_order="left")
    return found.filter(pl.col("n_lost") > pl.col("gap"))


def _gaps(rows: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """The most records between two losses of each stretch: a loss that is printed rarely is not gone in between."""
    records = rows.group_by(*key, "seq", maintain_order=True).agg(pl.col("told").any())
    place = pl.int_range(pl.len()).over(key)
    losses = records.with_columns(place=place).filter("told")
    return losses.group_by(key, maintain_order=True).agg(gap=(pl.col("place").diff() - 1).max().fill_null(0))
