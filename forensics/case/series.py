"""The index of all series of a run: one pass over the metric rows, so that no question looks at rows it does not need.

A series is one printed name of one rank, in one attempt of one source, under one canonical name. The index knows each
by its key and holds the numbers of its rows; `metric_rows` gives those of some series as the table has them, and
`metric_records` the rest of a row once for all metrics of a record.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from forensics.case.names.inferred import understood
from forensics.case.names.ranks import by_named_rank
from forensics.case.names.splits import told_apart
from forensics.case.steps import ends, key_of, of_training, parts, without_inner
from forensics.io.columns import as_column
from forensics.knowledge.vocabulary import words_for
from forensics.patterns import having
from forensics.store.even import Even, evened
from forensics.store.packed import CODED, PLACE, RECORD, Packed
from forensics.store.run import Run, derived
from forensics.store.schema import TABLES

_CODE = "code"
Bools = NDArray[np.bool_]
RowNumbers = NDArray[np.uint32] | Even
_KEY = ("source", "attempt", "rank", "raw_name", "name")
_SERIES = _KEY[:4]
_OF_A_STEP = ("step", "gstep", "epoch", "line", "source", "attempt", "rank", "evaluates", "trains")
_RISING = ("seq", "byte", "t_ns")
#: One row of so many, or more, is found faster by a mark than by sorting.
_DENSE = 20
#: So many rows are looked at together: sorting takes four times the memory of the row numbers it gives.
_PIECE_ROWS = 500_000
#: So many records are looked at together: with all their columns they take 100 MB.
PIECE_RECORDS = 1_000_000


class Index(Struct, frozen=True, eq=False):
    """All metric rows, and which of them belong to which series.

    `keys` has a row for each series in the order of their first records: `source`, `attempt`, `rank`, `raw_name`,
    `name`, `n` records, `n_finite` of them that hold a finite number, `n_null` that hold none, `n_stepped` that hold a
    number and a step, and `n_timed` that have a time, too. `table` are the packed rows, `own` the row numbers of
    each series, rising.
    """

    table: Packed
    keys: pl.DataFrame
    own: Sequence[RowNumbers]

    def places(self, wanted: NDArray[np.bool_]) -> NDArray[np.uint32]:
        """Give the row numbers of the series for which `wanted` is true, rising; one entry for each of `keys`."""
        return self._joined(np.flatnonzero(wanted).tolist())

    def records(self, own: Sequence[int]) -> NDArray[np.uint32]:
        """Give the row numbers of some of `keys` together in the order of their records, without those of no number."""
        found = self._joined(own)
        if self.held(own, "n_null"):
            found = found[(self.table.short("value_class", found) != "null").to_numpy()]
        pieces = (found[max(at - 1, 0) : at + PIECE_RECORDS] for at in range(0, len(found), PIECE_RECORDS))
        if all((seqs[1:] >= seqs[:-1]).all() for seqs in map(self._seqs, pieces)):
            return found
        return found[np.argsort(self._seqs(found), kind="stable")]

    def _seqs(self, rows: NDArray[np.uint32]) -> NDArray[Any]:
        seqs = self.table.numbers("seq", rows)
        return np.nan_to_num(seqs, nan=-1) if seqs.dtype.kind == "f" else seqs  # a record without a number is the first

    def finite_at_steps(self, own: Sequence[int]) -> NDArray[np.uint32]:
        """Give `records` without those of no finite number or without a step; mostly it is known that none are."""
        rows = self.records(own)
        if self.held(own, "n_finite") == self.held(own, "n_stepped") == self.held(own, "n"):
            return rows
        stepped = self.table.short("step", rows).is_not_null() | self.table.short("gstep", rows).is_not_null()
        return rows[((self.table.short("value_class", rows) == "finite") & stepped).to_numpy()]

    def reach(self, own: Sequence[int]) -> tuple[int, int] | tuple[None, None]:
        """Give the first and the last step of some of `keys`, as `case.steps.at` has them."""
        rows = self._joined(own)
        pieces = (rows[first : first + PIECE_RECORDS] for first in range(0, len(rows), PIECE_RECORDS))
        steps = (self.table.steps(piece).drop_nulls().to_numpy() for piece in pieces)
        ends = [(int(some.min()), int(some.max())) for some in steps if len(some)]
        return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else (None, None)

    def held(self, own: Sequence[int], what: str) -> int:
        """Count the records of some of `keys`, by one of their columns as `n_finite`."""
        counts = self.keys.get_column(what).to_numpy()
        return int(counts[own[0]] if len(own) == 1 else counts[own].sum())

    def is_finite(self, own: Sequence[int]) -> bool:
        """Whether every record of some of `keys` that holds a number holds a finite one."""
        return self.held(own, "n_finite") + self.held(own, "n_null") == self.held(own, "n")

    def _joined(self, own: Sequence[int]) -> NDArray[np.uint32]:
        if len(own) == 1:
            return self._rows(own[0])
        if _DENSE * self.held(own, "n") < self.table.height:
            return np.sort(np.concatenate([self._rows(i) for i in own])) if own else np.zeros(0, np.uint32)
        held = np.zeros(self.table.height, np.bool_)
        for i in own:
            held[self._rows(i)] = True
        return np.flatnonzero(held).astype(np.uint32)

    def _rows(self, i: int) -> NDArray[np.uint32]:
        return whole(self.own[i])


def compact(rows: NDArray[np.uint32], table: Packed) -> RowNumbers:
    """Give the numbers of some rows as they are held: by a line where the table is large."""
    return (evened(rows) if table.evens else None) or rows


def whole(rows: RowNumbers) -> NDArray[np.uint32]:
    """Give row numbers as an array, however they are held."""
    return rows.whole(np.uint32) if isinstance(rows, Even) else rows


@derived
def index_of(run: Run) -> Index:
    """Make the index of a run, or give the one that was made."""
    table = understood(told_apart(by_named_rank(run.packed_metrics())))
    own = _grouped(table)
    firsts = np.array([rows[0] for rows in own], np.uint32)
    marks = {name: _marked(rows, own) for name, rows in _told(table).items()}
    keys = pl.DataFrame([*(table.gather(name, firsts) for name in _KEY), pl.Series("n", [*map(len, own)])]).hstack(
        [as_column(found, name) for name, found in marks.items()]
    )
    return Index(table, keys, [compact(rows, table) for rows in own])


def keys_of(run: Run) -> pl.DataFrame:
    """List the series of a run: `source`, `attempt`, `rank`, `raw_name`, `name`, and how many records they have."""
    return index_of(run).keys


def holding(run: Run, means: str, column: str = "name") -> pl.Expr:
    """Choose, for `metric_rows`, the series in whose name words of a meaning are found.

    Each name is asked once, and where they are few by Python, which keeps its patterns from run to run: polars keeps
    32, and compiles any other anew in 0.3 to 2 ms.
    """
    return pl.col(column).is_in(having(run.derived(_Printed(column)), words_for(means)))


class _Printed(Struct, frozen=True):
    """What the series of a run are called, each once."""

    column: str

    def __call__(self, run: Run) -> pl.Series:
        """Give the names of a column."""
        return keys_of(run)[self.column].unique()


def metric_rows(run: Run, where: pl.Expr, *, without: pl.DataFrame | None = None, coded: bool = False) -> pl.LazyFrame:
    """Give the metric rows of some series, in the order of the table; a column that nobody asks for is not made.

    `where` is an expression over the columns of `keys_of`; series in `without` (source, attempt, rank and raw name) are
    left out. With `coded`, texts are categories, which take a quarter of the memory.
    """
    index = index_of(run)
    wanted = chosen(index, where, without)
    if not wanted.any():
        return _nothing(coded=coded)
    rows = None if wanted.all() else index.places(wanted)
    return index.table.lazy(rows, coded=coded, columns=run.derived(_Columns(every=rows is None, coded=coded)))


def placed_rows(run: Run, where: pl.Expr) -> pl.LazyFrame:
    """Give rows as `metric_rows` does, texts as categories, with `PLACE`, the number of each in the index's table.

    Who keeps the few columns that are measured finds the rest of a row by its place (`Packed.row`).
    """
    index = index_of(run)
    wanted = chosen(index, where)
    if not wanted.any():
        return _nothing(coded=True).with_columns(pl.lit(0, dtype=pl.UInt32).alias(PLACE))
    columns = run.derived(_Columns(every=False, coded=True))
    return index.table.lazy(index.places(wanted), coded=True, columns=columns, place=True)


@cache
def _nothing(*, coded: bool) -> pl.LazyFrame:
    """No metric rows: a question about them takes a third of the time that it takes of some."""
    return pl.LazyFrame(schema=CODED if coded else dict(TABLES["metrics"]))


class _Columns(Struct, frozen=True):
    """What makes the columns of metric rows, of all or of some: made once for all questions."""

    every: bool
    coded: bool

    def __call__(self, run: Run) -> list[pl.Expr]:
        """Give the expressions."""
        return index_of(run).table.columns(every=self.every, coded=self.coded)


def standing_in(run: Run, some: pl.DataFrame) -> pl.Expr:
    """Choose, for `metric_rows`, the series in a frame of columns of their key; attempt 0 is also none."""
    keys = keys_of(run).with_columns(pl.col("attempt").fill_null(0))
    known = some.unique().with_columns(known=pl.lit(value=True))
    found = keys.join(known, on=some.columns, how="left", nulls_equal=True, maintain_order="left")
    return pl.lit(found["known"].fill_null(value=False))


def chosen(index: Index, where: pl.Expr, without: pl.DataFrame | None = None) -> NDArray[np.bool_]:
    """Tell which series of an index fit `where` and are not in `without`, one entry for each."""
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
    order of the table. Series in `without` (source, attempt, rank and raw name) are left out.
    """
    return index_of(run).table.lazy_records(_records_without(run, without), _shared(run))


def record_pieces(run: Run, *, without: pl.DataFrame | None = None, inner: bool = True) -> Iterator[pl.LazyFrame]:
    """Give what `metric_records` gives, some at a time, for a question that looks at each record by itself.

    With `inner` false, of many records of one step whose places and times rise, as those of an event file, they are the
    first and the last.
    """
    records, table = _records_without(run, without), index_of(run).table
    if not inner:
        records = _step_ends(run) if records is _records(run) else _ends(run, records)
    for first in range(0, max(records.height, 1), PIECE_RECORDS):
        yield table.lazy_records(records.slice(first, PIECE_RECORDS), _shared(run))


def of_each_source(
    run: Run, *rows: pl.LazyFrame, same: Sequence[str] = (), rising: Sequence[str] = ()
) -> dict[str, pl.DataFrame]:
    """Collect metric rows or records by their `source`, in the order of their first ones; no entry holds none.

    With `same`, columns that say what is looked for, of equal rows the first and the last are kept (`case.steps.ends`).

    In a run of one file its name is no column: with each of a million records it would take 16 MB. What is given in
    pieces, as `record_pieces` gives it, is large, and whole numbers take no more bytes than they need.
    """
    sources: list[str] = keys_of(run)["source"].unique().to_list()
    alone = sources[0] if len(sources) == 1 else None
    every_same = (*same, "source") if same and alone is None else same
    collected = ((piece if alone is None else piece.drop("source")).collect() for piece in rows)
    collected = (ends(piece, *every_same, rising=rising) if same else piece for piece in collected)
    every = [one if len(rows) == 1 else shortened(one) for one in collected]
    found = every[0] if len(every) == 1 else pl.concat(every, how="vertical_relaxed")
    every.clear()
    if alone is not None:
        return {alone: found} if found.height else {}
    return {key_of(part, ["source"])[0]: part for part in parts(found, ["source"]) if part.height}


def shortened(rows: pl.DataFrame) -> pl.DataFrame:
    """The same rows with whole numbers that take no more bytes than they need."""
    return rows.select(column.shrink_dtype() if column.dtype.is_integer() else column for column in rows)


def _grouped(table: Packed) -> list[NDArray[np.uint32]]:
    """The row numbers of each series, in the order of their first rows."""
    code, owner = table.code_of().to_numpy(), _owners(table)
    record = None if owner is None else table.record_of().to_numpy()
    dtype = np.min_scalar_type(table.names.height * (1 if owner is None else int(owner.max(initial=0)) + 1))
    parts, keys = list[NDArray[np.uint32]](), list[NDArray[Any]]()
    for first in range(0, table.height, _PIECE_ROWS):
        key = code[first : first + _PIECE_ROWS].astype(dtype)
        if owner is not None and record is not None:
            key += owner.astype(dtype)[record[first : first + _PIECE_ROWS]] * dtype.type(table.names.height)
        order = np.argsort(key, kind="stable")
        key = key[order]
        begins = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        numbers: NDArray[np.uint32] = (order + first).astype(np.uint32)
        parts += [numbers[low:high] for low, high in pairwise([*begins.tolist(), len(key)])]
        keys.append(key[begins])
    found: dict[int, list[NDArray[np.uint32]]] = {}
    for series, part in zip(np.concatenate(keys).tolist() if keys else (), parts, strict=True):
        found.setdefault(series, []).append(part)
    own = [many[0] if len(many) == 1 else np.concatenate(many) for many in found.values()]
    return sorted(own, key=lambda rows: int(rows[0]))


def _owners(table: Packed) -> NDArray[np.uint32] | None:
    """The number of the source, attempt and rank of each record; None where all have the same."""
    own = [name for name in _KEY[:3] if name not in table.alone]
    if not own:
        return None
    every = pl.DataFrame([table.shared(name) for name in own])
    known = every.unique(maintain_order=True).with_row_index(_CODE)
    return every.join(known, on=own, how="left", nulls_equal=True, maintain_order="left")[_CODE].to_numpy()


def _told(table: Packed) -> dict[str, Bools]:
    """What a row says beside its key; one value where it is that of all rows."""
    classes = table.short("value_class", np.zeros(1, np.uint32) if "value_class" in table.alone else None)
    stepped, timed = (_of_rows(table, _any_of(table, names)) for names in (("step", "gstep"), ("t_ns",)))
    numbered = stepped & _true(classes != "null")
    return {
        "n_finite": _true(classes == "finite"),
        "n_null": _true(classes == "null"),
        "n_stepped": numbered,
        "n_timed": numbered & timed,
    }


def _true(marks: pl.Series) -> Bools:
    return marks.fill_null(value=False).to_numpy()


def _any_of(table: Packed, names: Sequence[str]) -> Bools:
    """Which records hold one of some columns."""
    return np.logical_or.reduce([table.shared(name).is_not_null().to_numpy() for name in names])


def _of_rows(table: Packed, records: Bools) -> Bools:
    """A mark of each record as that of its rows; one value where it is the same everywhere."""
    if records.all() or not records.any():
        return np.array([bool(records.all()) and len(records) > 0])
    return records[table.record_of().to_numpy()]


def _marked(rows: Bools, own: Sequence[NDArray[np.uint32]]) -> NDArray[np.int64]:
    """How many rows of each series are true."""
    counts = np.array([*map(len, own)], np.int64)
    if rows.all() or not rows.any():
        return counts if rows.any() else np.zeros_like(counts)
    return np.array([np.count_nonzero(rows[one]) for one in own], np.int64)


@derived
def _shared(run: Run) -> dict[str, pl.Expr]:
    """What makes the columns of records: made once for all questions."""
    return index_of(run).table.shared_columns()


def _records_without(run: Run, without: pl.DataFrame | None) -> pl.DataFrame:
    if without is None or without.is_empty():
        return _records(run)
    index = index_of(run)
    return _once_a_record(index, index.places(chosen(index, pl.lit(value=True), without)))


@derived
def _records(run: Run) -> pl.DataFrame:
    return _once_a_record(index_of(run), None)


@derived
def _step_ends(run: Run) -> pl.DataFrame:
    return _ends(run, _records(run))


def _ends(run: Run, records: pl.DataFrame) -> pl.DataFrame:
    """The records without those inside a stretch of one step (`case.steps.ends`)."""
    pieces = [records.slice(at, PIECE_RECORDS) for at in range(0, max(records.height, 1), PIECE_RECORDS)]
    kept = [without_inner(piece, _columns_of(run, piece)) for piece in pieces]
    return records if all(map(operator.is_, kept, pieces)) else pl.concat(kept)


def _columns_of(run: Run, records: pl.DataFrame) -> Iterator[tuple[pl.Series, bool]]:
    """What records of one step have in common, and what rises from one to the next; a value of all is in common."""
    table = index_of(run).table
    for name in (*_OF_A_STEP, *_RISING):
        if table.alone.get(name) is None if name in _RISING else name not in table.alone:
            yield table.lazy_records(records, _shared(run)).select(name).collect().to_series(), name in _RISING


def _once_a_record(index: Index, rows: NDArray[np.uint32] | None) -> pl.DataFrame:
    """Of rows that follow each other in one record, and are all of training or of an evaluation, the first."""
    table, height = index.table, index.table.height if rows is None else len(rows)
    flags = table.names.select(
        evaluates=pl.col("name").str.starts_with("eval").fill_null(value=False),
        trains=of_training().fill_null(value=False),
    )
    told = as_column((flags["evaluates"].to_numpy() * np.uint8(2)) | flags["trains"].to_numpy())
    kept: list[pl.DataFrame] = []
    for begin in range(0, max(height, 1), PIECE_RECORDS):
        end = min(begin + PIECE_RECORDS, height)
        ahead = max(begin - 1, 0)  # whether the first of a piece goes on is seen beside the row before it
        piece = None if end - ahead == table.height else np.arange(ahead, end) if rows is None else rows[ahead:end]
        record, said = table.record_of(piece), told.gather(table.code_of(piece))
        number, kind = record.to_numpy(), said.to_numpy()
        first = np.ones(len(record), np.bool_)
        first[1:] = (number[1:] != number[:-1]) | (kind[1:] != kind[:-1])
        first[: begin - ahead] = False
        own = as_column(first)
        told_by = said.filter(own)
        kept.append(pl.DataFrame({RECORD: record.filter(own), "evaluates": told_by >= 2, "trains": told_by % 2 == 1}))
    return kept[0] if len(kept) == 1 else pl.concat(kept)


@derived
def metric_names(run: Run) -> pl.DataFrame:
    """Columns source, name, raw_name, a row for each that differs, sorted; remembered with the run."""
    columns = ("source", "name", "raw_name")
    return keys_of(run).select(columns).unique().sort(columns)
