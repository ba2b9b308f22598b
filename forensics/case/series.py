"""The index of all series of a run: one pass over the metric rows, so that no question looks at rows it does not need.

A series is one printed name of one rank, in one attempt of one source, under one canonical name. The index knows each
by its key and holds the numbers of its rows; `metric_rows` gives those of some series as the table has them, and
`metric_records` the rest of a row once for all metrics of a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forensics.case.steps import of_training
from forensics.store.packed import unpacked
from forensics.store.run import Run
from forensics.store.schema import TABLES

_TABLE = "metrics"
_ROW = "#row"
_KEY = ("source", "attempt", "rank", "raw_name", "name")
_SERIES = _KEY[:4]
#: What all metrics of one record have in common.
_PLACE = ("source", "attempt", "rank", "seq", "line", "byte", "step", "gstep", "epoch", "t_ns")
#: One row of so many, or more, is found faster by a mark than by sorting.
_DENSE = 20
#: So many rows are looked at together: grouping takes ten times the memory of the row numbers it gives.
_PIECE_ROWS = 500_000


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """All metric rows, and which of them belong to which series.

    `keys` has a row for each series in the order of their first records: `source`, `attempt`, `rank`, `raw_name`,
    `name`, `n` records, `n_finite` of them that hold a finite number, `n_null` that hold none, `n_stepped` that hold a
    number and a step, and `n_timed` that have a time, too. `table` are the packed rows, `order` the row numbers, series
    after series, each rising; those of a series are `counts` of them, up to `ends`. `seqs` is the column `seq`, with -1
    for null.
    """

    table: pl.DataFrame
    keys: pl.DataFrame
    order: NDArray[np.uint32]
    counts: NDArray[np.int64]
    ends: NDArray[np.int64]
    seqs: NDArray[np.signedinteger[Any]]

    def places(self, wanted: NDArray[np.bool_]) -> NDArray[np.uint32]:
        """Give the row numbers of the series for which `wanted` is true, rising; one entry for each of `keys`."""
        return self._joined(np.flatnonzero(wanted).tolist())

    def records(self, own: Sequence[int]) -> NDArray[np.uint32]:
        """Give the row numbers of some of `keys` together in the order of their records, without those of no number."""
        found = self._joined(own)
        if self.held(own, "n_null"):
            found = found[(self.table["value_class"].gather(pl.Series(found)) != "null").to_numpy()]
        seqs = self.seqs[found]
        return found if (seqs[1:] >= seqs[:-1]).all() else found[np.argsort(seqs, kind="stable")]

    def held(self, own: Sequence[int], what: str) -> int:
        """Count the records of some of `keys`, by one of their columns as `n_finite`."""
        return int(self.keys[what].to_numpy()[own].sum())

    def is_finite(self, own: Sequence[int]) -> bool:
        """Whether every record of some of `keys` that holds a number holds a finite one."""
        return self.held(own, "n_finite") + self.held(own, "n_null") == self.held(own, "n")

    def _joined(self, own: Sequence[int]) -> NDArray[np.uint32]:
        found = [self.order[self.ends[i] - self.counts[i] : self.ends[i]] for i in own]
        if len(found) == 1:
            return found[0]
        if _DENSE * sum(map(len, found)) < len(self.order):
            return np.sort(np.concatenate(found)) if found else self.order[:0]
        held = np.zeros(len(self.order), np.bool_)
        for rows in found:
            held[rows] = True
        return np.flatnonzero(held).astype(np.uint32)


def index_of(run: Run) -> Index:
    """Make the index of a run, or give the one that was made."""
    return run.derived(_index_of)


def keys_of(run: Run) -> pl.DataFrame:
    """List the series of a run: `source`, `attempt`, `rank`, `raw_name`, `name`, and how many records they have."""
    return index_of(run).keys


def metric_rows(run: Run, where: pl.Expr, *, without: pl.DataFrame | None = None, coded: bool = False) -> pl.LazyFrame:
    """Give the metric rows of some series, in the order of the table; a column that nobody asks for is not made.

    `where` is an expression over the columns of `keys_of`; series that stand in `without` (source, attempt, rank and
    raw name) are left out. With `coded`, texts are categories, which take a quarter of the memory.
    """
    index = index_of(run)
    wanted = chosen(index, where, without)
    if wanted.all() and not coded:
        return unpacked(_TABLE, index.table)
    return _gathered(index, wanted, coded=coded)


def standing_in(run: Run, some: pl.DataFrame) -> pl.Expr:
    """Choose, for `metric_rows`, the series that stand in a frame of columns of their key; attempt 0 is also none."""
    keys = keys_of(run).with_columns(pl.col("attempt").fill_null(0))
    known = some.unique().with_columns(known=pl.lit(value=True))
    found = keys.join(known, on=some.columns, how="left", nulls_equal=True, maintain_order="left")
    return pl.lit(found["known"].fill_null(value=False))


def chosen(index: Index, where: pl.Expr, without: pl.DataFrame | None = None) -> NDArray[np.bool_]:
    """Tell which series of an index fit `where` and do not stand in `without`, one entry for each."""
    marked = index.keys.with_columns(wanted=where.fill_null(value=False))
    if without is not None and without.height:
        gone = without.with_columns(gone=pl.lit(value=True))
        marked = marked.join(gone, on=[*_SERIES], how="left", nulls_equal=True, maintain_order="left")
        marked = marked.with_columns(wanted=pl.col("wanted") & pl.col("gone").is_null())
    return marked["wanted"].to_numpy()


def metric_records(run: Run, *, without: pl.DataFrame | None = None) -> pl.LazyFrame:
    """Give the place, steps and time of every metric row once for all rows of a record that follow each other.

    Columns `source`, `attempt`, `rank`, `seq`, `line`, `byte`, `step`, `gstep`, `epoch`, `t_ns`, and, by the canonical
    name, `evaluates`: whether the row is one of an evaluation, and `trains`: whether training itself logged it; in the
    order of the table. Series that stand in `without` (source, attempt, rank and raw name) are left out.
    """
    index = index_of(run)
    if without is None or without.is_empty():
        found = run.derived(_records)
    else:
        rows = index.places(chosen(index, pl.lit(value=True), without))
        found = _once_a_record(index.table.select(*_PLACE, "name")[rows], index.keys)
    return _typed(found, _of_one_value(index.keys)).with_columns(found["evaluates", "trains"]).lazy()


def _gathered(index: Index, wanted: NDArray[np.bool_], *, coded: bool) -> pl.LazyFrame:
    """The rows of some series; a column of one value takes the memory of one."""
    keys, table = index.keys.filter(pl.Series(wanted)), index.table
    alone = _of_one_value(keys) | {name: None for name, dtype in table.schema.items() if dtype == pl.Null}
    if (keys["n_finite"] == keys["n"]).all():
        alone["value_class"] = "finite"

    def made(name: str, dtype: pl.DataType) -> pl.Expr:
        if name in alone:
            return pl.lit(alone[name], dtype=pl.Categorical() if coded and dtype == pl.String else dtype)
        found = pl.lit(table[name]).gather(pl.col(_ROW))
        return found if coded and dtype == pl.String else found.cast(dtype)

    rows = pl.DataFrame({_ROW: index.places(wanted)}).lazy()
    return rows.with_columns(**{name: made(name, dtype) for name, dtype in TABLES[_TABLE].items()}).select(
        *TABLES[_TABLE]
    )


def _of_one_value(keys: pl.DataFrame) -> dict[str, object]:
    return {name: keys[name][0] for name in _KEY if keys[name].n_unique() == 1}


def _typed(rows: pl.DataFrame, alone: Mapping[str, object]) -> pl.DataFrame:
    """The columns of the table that rows have, with its types; `alone` are columns of one value, and which."""
    alone = {**alone, **{name: None for name, dtype in rows.schema.items() if dtype == pl.Null and name not in alone}}
    types = {name: dtype for name, dtype in TABLES[_TABLE].items() if name in rows.columns}
    return rows.with_columns(
        (pl.lit(alone[name], dtype=dtype) if name in alone else pl.col(name).cast(dtype)).alias(name)
        for name, dtype in types.items()
    ).select(*types)


def _index_of(run: Run) -> Index:
    table = run.packed(_TABLE)
    varied = [name for name in _KEY if not table.height or _varies(table, name)] or [*_KEY[-1:]]
    keyed = table.select(varied).with_row_index("row")
    pieces = [
        keyed.slice(first, _PIECE_ROWS).group_by(varied, maintain_order=True).agg("row")
        for first in range(0, max(1, keyed.height), _PIECE_ROWS)
    ]
    grouped = pl.concat(pieces)
    if len(pieces) > 1:
        grouped = grouped.group_by(varied, maintain_order=True).agg(pl.col("row").list.explode(empty_as_null=False))
    alone = [table[:1][name].new_from_index(0, grouped.height) for name in _KEY if name not in varied]
    grouped = grouped.with_columns(alone)
    order = grouped["row"].list.explode(empty_as_null=False).to_numpy()
    texts = {name: pl.String() for name in ("source", "raw_name", "name")}
    keys = grouped.select(*_KEY, pl.col("row").list.len().cast(pl.Int64).alias("n"))
    keys = keys.cast({**texts, "attempt": pl.Int32(), "rank": pl.Int32()})
    counts = keys["n"].to_numpy()
    classes = pl.col("value_class")
    numbered = pl.any_horizontal(pl.col("step", "gstep").is_not_null()) & (classes != "null")
    told = {
        "n_finite": classes == "finite",
        "n_null": classes == "null",
        "n_stepped": numbered,
        "n_timed": numbered & pl.col("t_ns").is_not_null(),
    }
    marks = table.select(rows.fill_null(value=False).alias(name) for name, rows in told.items())
    keys = keys.with_columns(_marked(marks[name], order, counts).alias(name) for name in told)
    return Index(table, keys, order, counts, np.cumsum(counts), table["seq"].fill_null(-1).to_numpy())


def _varies(table: pl.DataFrame, name: str) -> bool:
    """Whether a column holds more than one value."""
    return table.height > 0 and not table.select(pl.col(name).eq_missing(pl.col(name).first()).all()).item()


def _marked(rows: pl.Series, order: NDArray[np.uint32], counts: NDArray[np.int64]) -> pl.Series:
    """How many rows of each series are true."""
    if rows.all() or not rows.any():
        return pl.Series(counts if rows.any() else np.zeros(len(counts), np.int64))
    before = np.concatenate([[0], np.cumsum(rows.to_numpy()[order], dtype=np.int64)])
    ends = np.cumsum(counts)
    return pl.Series(before[ends] - before[ends - counts])


def _records(run: Run) -> pl.DataFrame:
    index = index_of(run)
    return _once_a_record(index.table.select(*_PLACE, "name"), index.keys)


def _once_a_record(rows: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    names = keys.select(pl.col("name").drop_nulls().unique())
    evaluating = names.filter(pl.col("name").str.starts_with("eval"))["name"].to_list()
    training = names.filter(of_training())["name"].to_list()
    evaluates, trains = (pl.col("name").is_in(some).fill_null(value=False) for some in (evaluating, training))
    place = rows.lazy().select(*_PLACE, evaluates=evaluates, trains=trains)
    if rows.select((pl.col("seq") != pl.col("seq").shift()).fill_null(value=True).all()).item():
        return place.collect()
    varied = [name for name in _PLACE if _varies(rows, name)]
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift()) for name in (*varied, "evaluates", "trains"))
    return place.filter(~same | (pl.int_range(pl.len()) == 0)).collect()


def metric_names(run: Run) -> pl.DataFrame:
    """Columns source, name, raw_name, a row for each that differs, sorted; remembered with the run."""
    return run.derived(_names)


def _names(run: Run) -> pl.DataFrame:
    columns = ("source", "name", "raw_name")
    return keys_of(run).select(columns).unique().sort(columns)
