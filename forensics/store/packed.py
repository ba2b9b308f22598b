"""Metric rows by the million, as memory holds them: what the rows of a record share once, names once for all rows.

A metric row takes 136 bytes with the types of the schema. Packed it takes 13 beside its record: its number, its name as
the number of one, and the number of its record, which holds source, place, step and time in 24 bytes or so. A column of
one value is held once for all rows. Of many millions of rows, which come from disk, numbers that rise about evenly are
held by a line (`even.py`), and values in 32 bits where these are exact (`words.py`). Nobody outside sees these parts by
their types: `column`, `gather` and `lazy` give columns those of the schema, of the rows that a query asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from forensics.io.columns import as_column
from forensics.store.even import Even, evened
from forensics.store.schema import CLASSES, TABLES
from forensics.store.words import OFTEN, SINGLE, read, worded
from forensics.values import replace

#: Tables that are packed.
PACKED = frozenset({"metrics"})
#: Columns that all rows of one record have in common.
SHARED = ("source", "attempt", "rank", "seq", "line", "byte", "step", "gstep", "epoch", "t_ns")
#: Columns of texts with few distinct pairs in a run, held as their numbers.
NAMED = ("name", "raw_name")
#: Fewer rows are packed together with others: packing costs a millisecond whatever it holds.
FEWEST_ROWS = 1_000
#: So many rows are packed at once where a table comes from elsewhere.
_PIECE_ROWS = 250_000
#: Names are looked for among so many rows to follow each other again.
_LONGEST_RECORD = 1_000
#: From so many rows on numbers are held by lines: below, what that saves is less than what a judgement takes beside.
_EVEN_ROWS = 5_000_000
_TABLE = "metrics"
_TEXT = pl.Categorical()
#: Types of the columns where texts are coded: in four bytes, and a class of a value in one.
CODED = {name: _TEXT if kind == pl.String else kind for name, kind in TABLES[_TABLE].items()}
CODED["value_class"] = pl.Enum(CLASSES)
#: The number of a record, beside its rows.
RECORD = "#record"
#: The number of a row among all, beside its columns.
PLACE = "place"
_ROW, _CODE, _KIND = "#row", "#code", "#kind"

#: Numbers of rows.
Rows = NDArray[np.integer[Any]]


class Packed(Struct, frozen=True, eq=False):
    """Metric rows. `own` has `#record` (the number of its record, rising), `#code` (of its names), `value` and more.

    `records` has a row for each run of rows that share their place, step and time; where each row is a record of its
    own there is no `#record`. `names` has the pairs of `NAMED`. `alone` are columns of one value, and which; `evens`
    are numbers, `#record` among them, that are held by a line. Where values are words (`words.py`) there is `#kind`,
    and `often` are numbers that some of them are the places of.
    """

    height: int
    n_records: int
    own: pl.DataFrame
    records: pl.DataFrame
    names: pl.DataFrame
    alone: Mapping[str, Any] = field(default_factory=dict[str, Any])
    evens: Mapping[str, Even] = field(default_factory=dict[str, Even])
    often: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def _is_by_row(self) -> bool:
        """Whether each row is a record of its own."""
        return self.n_records == self.height

    def _is_worded(self, name: str) -> bool:
        """Whether a column holds words that are read by their kinds."""
        return name == "value" and _KIND in self.own.columns

    def _read(self, held: Sequence[pl.Series]) -> pl.Series:
        words, kinds = (column.to_numpy() for column in held)
        return as_column(read(words, kinds, self.often), "value")

    def record_of(self, rows: Rows | None = None) -> pl.Series:
        """Give the numbers of the records of some rows, or of all."""
        if RECORD in self.evens:
            return _series(RECORD, self.evens[RECORD], rows, np.uint32)
        if RECORD in self.own.columns:
            return _of(self.own[RECORD], rows)
        return as_column(np.arange(self.height, dtype=np.uint32) if rows is None else rows, RECORD)

    def _records_of(self, rows: Rows) -> Rows:
        held = None if RECORD in self.evens else self.own.get_column(RECORD)
        return self.evens[RECORD].take(rows) if held is None else held.to_numpy()[rows]

    def code_of(self, rows: Rows | None = None) -> pl.Series:
        """Give the numbers, in `names`, of the names of some rows, or of all."""
        return _of(self.own[_CODE], rows)

    def short(self, name: str, rows: Rows | None = None) -> pl.Series:
        """Give a column of some rows, or of all, with a type as short as it is held; texts are categories."""
        if name in self.alone:
            alone = pl.Series(name, [self.alone[name]], dtype=CODED[name])
            return alone.new_from_index(0, self.height if rows is None else len(rows))
        if name in NAMED:
            return self.names.get_column(name).cast(_TEXT)[self.code_of(rows)]
        if name in self.evens:
            return _series(name, self.evens[name], rows if self._is_by_row else self.record_of(rows).to_numpy())
        if name in SHARED:
            column = self.records.get_column(name)
            return _double(column if rows is None and self._is_by_row else column[self.record_of(rows)])
        if self._is_worded(name):
            return self._read([_of(self.own.get_column(one), rows) for one in (name, _KIND)])
        return _double(_of(self.own.get_column(name), rows))

    def steps(self, rows: Rows) -> pl.Series:
        """Give the steps of some rows, as `case.steps.at` has them; null where none."""
        steps, others = (self.short(name, rows) for name in ("gstep", "step"))
        if steps.null_count() == len(rows):
            return others
        return steps.cast(pl.Int64).zip_with(steps.is_not_null(), others.cast(pl.Int64))

    def row(self, row: int) -> dict[str, Any]:
        """Give one row."""
        return {name: self.value(name, row) for name in TABLES[_TABLE]}

    def numbers(self, name: str, rows: Rows) -> NDArray[Any]:
        """Give a column of numbers of some rows as an array has it, in a tenth of the time of a column for few rows."""
        is_plain = name not in self.alone and name not in self.evens and not self._is_worded(name)
        column = (self.records if name in SHARED else self.own).get_column(name) if is_plain else None
        if column is None or column.null_count():
            return self.short(name, rows).to_numpy()
        own = name not in SHARED or self._is_by_row
        found = column.to_numpy()[rows if own else self._records_of(rows)]
        return found.astype(np.float64) if found.dtype == np.float32 else found

    def gather(self, name: str, rows: Rows) -> pl.Series:
        """Give a column of some rows, with the type of the schema."""
        return self.short(name, rows).cast(TABLES[_TABLE][name])

    def value(self, name: str, row: int) -> Any:  # noqa: ANN401 - a value of a table
        """Give one cell."""
        if name in self.alone:
            return self.alone[name]
        if name in NAMED:
            return self.names.get_column(name)[self.own.get_column(_CODE)[row]]
        if name in SHARED:
            return self.cell(name, row if self._is_by_row else self._record(row))
        if self._is_worded(name):
            return self.short(name, np.array([row]))[0]
        return self.own.get_column(name)[row]

    def cell(self, name: str, record: int) -> Any:  # noqa: ANN401 - same
        """Give the cells of `SHARED` of one record."""
        if name in self.alone:
            return self.alone[name]
        return self.evens[name].one(record) if name in self.evens else self.records.get_column(name)[record]

    def _record(self, row: int) -> int:
        return self.evens[RECORD].one(row) if RECORD in self.evens else self.own.get_column(RECORD)[row]

    def shared(self, name: str) -> pl.Series:
        """Give one of `SHARED`, a value for each record, with a type as short as it is held."""
        if name in self.evens:
            return _series(name, self.evens[name])
        if name not in self.alone:
            return _double(self.records[name])
        alone = _short(pl.Series(name, [self.alone[name]], dtype=TABLES[_TABLE][name]))
        return alone.new_from_index(0, self.n_records)

    def taken(self, name: str) -> pl.Series:
        """Give a column that is no name, as `shared` where it is one of those; it is held here no longer."""
        if name in SHARED:
            return self.records.drop_in_place(name) if name in self.records.columns else self.shared(name)
        if self._is_worded(name):
            return self._read([self.own.drop_in_place(name), self.own.drop_in_place(_KIND)])
        return self.short(name) if name in self.alone else self.own.drop_in_place(name)

    def lazy(
        self,
        rows: Rows | None = None,
        *,
        coded: bool = False,
        columns: Sequence[pl.Expr] | None = None,
        place: bool = False,
    ) -> pl.LazyFrame:
        """Give some rows, or all, with the types of the schema; a column that nobody asks for is not made.

        With `coded`, texts are categories, which take a quarter of the memory. `columns` are the expressions of
        `columns`, where somebody keeps them. With `place`, some rows have their numbers as `PLACE`, by which `row`
        gives each.
        """
        if rows is None and RECORD in self.own.columns:
            numbered = self.own.lazy()
        elif rows is None:
            numbered = self.own.lazy().with_row_index(_ROW).with_columns(self._record_expression())
        else:
            numbered = as_column(rows, _ROW).to_frame().lazy()
            code = pl.lit(self.own[_CODE]).gather(_ROW).alias(_CODE)
            numbered = numbered.with_columns(self._record_expression(), code)
        made = self.columns(every=rows is None, coded=coded) if columns is None else columns
        placed = [pl.col(_ROW).alias(PLACE)] if place else []
        return numbered.with_columns(made).select(pl.col(*TABLES[_TABLE]), *placed)

    def columns(self, *, every: bool, coded: bool = False) -> list[pl.Expr]:
        """Give the expressions of the columns of `lazy`, of all rows or of some: they cost more than most questions."""
        return [self._expression(name, every=every, coded=coded).alias(name) for name in TABLES[_TABLE]]

    def _record_expression(self) -> pl.Expr:
        if RECORD in self.evens:
            return self.evens[RECORD].expression(_ROW).cast(pl.UInt32).alias(RECORD)
        return (pl.lit(self.own[RECORD]).gather(_ROW) if RECORD in self.own.columns else pl.col(_ROW)).alias(RECORD)

    def _expression(self, name: str, *, every: bool = True, coded: bool = False) -> pl.Expr:
        dtype = (CODED if coded else TABLES[_TABLE])[name]
        if name in self.alone:
            return pl.lit(self.alone[name], dtype=dtype)
        if name in self.names.columns:
            return pl.lit(self.names[name].cast(dtype)).gather(_CODE)
        if name in self.evens:
            return self.evens[name].expression(RECORD).cast(dtype)
        if name in self.records.columns:
            return pl.lit(self.records[name]).gather(RECORD).cast(dtype)
        names = (name, _KIND) if self._is_worded(name) else (name,)
        held = [pl.col(one) if every else pl.lit(self.own[one]).gather(_ROW) for one in names]
        return held[0].cast(dtype) if len(held) == 1 else pl.map_batches(held, self._read, return_dtype=dtype)

    def shared_columns(self) -> dict[str, pl.Expr]:
        """Give the expressions of the columns of `lazy_records`."""
        return {name: self._expression(name) for name in SHARED}

    def lazy_records(self, records: pl.DataFrame, made: Mapping[str, pl.Expr]) -> pl.LazyFrame:
        """Give columns of `SHARED` with the types of the schema, for records by their `RECORD`, and its others.

        `made` are those of `shared_columns`; a column that nobody asks for is not made.
        """
        others = (name for name in records.columns if name != RECORD)
        return records.lazy().with_columns(**made).select(*made, *others)

    def renamed(self, names: Mapping[str, str]) -> Packed:
        """Give the same rows with other canonical names for some printed ones."""
        given = pl.col("raw_name").replace_strict(names, default=pl.col("name"), return_dtype=pl.String)
        return replace(self, names=self.names.with_columns(name=given))

    def renamed_within(self, sources: Sequence[str], names: Mapping[str, tuple[str, str]]) -> Packed:
        """Give the same rows with both names changed for some printed ones, in the rows of some sources alone."""
        given = [names.get(raw, (name, raw)) for name, raw in self.names.select(NAMED).iter_rows()]
        both = pl.concat(
            [self.names.select(NAMED), pl.DataFrame(given, schema=dict.fromkeys(NAMED, pl.String), orient="row")]
        )
        source, n_names = self.short("source"), self.names.height
        inside = np.logical_or.reduce([(source == one).fill_null(value=False).to_numpy() for one in sources])
        code = self.code_of().to_numpy() + n_names * inside
        held = np.bincount(code, minlength=2 * n_names) > 0
        own = self.own.with_columns(as_column((np.cumsum(held) - 1).astype(np.uint32)[code], _CODE))
        return replace(self, own=own, names=both.filter(as_column(held)))

    def values_of(self, raw_name: str) -> pl.Series:
        """Give the values of the rows with a printed name."""
        codes = self.names.with_row_index(_CODE).filter(pl.col("raw_name") == raw_name)[_CODE]
        return self.short("value").filter(self.code_of().is_in(codes.implode()))

    def scaled(self, factors: Mapping[str, float]) -> Packed:
        """Give the same rows with the values of some printed names multiplied."""
        factor = self.names["raw_name"].replace_strict(factors, default=1.0, return_dtype=pl.Float64)
        scaled = (self.short("value") * factor[self.code_of()]).alias("value")
        return replace(self, own=self.own.drop(_KIND, strict=False).with_columns(scaled))

    def estimated_size(self) -> int:
        """Give the bytes that the rows take."""
        beside = sum(even.rest.nbytes for even in self.evens.values() if even.rest is not None)
        return beside + sum(int(frame.estimated_size()) for frame in (self.own, self.records, self.names))


def pack(table: str, frame: pl.DataFrame | Packed) -> pl.DataFrame | Packed:
    """Give the same rows in fewer bytes; a table that is not packed stays as it is."""
    return frame if isinstance(frame, Packed) or table not in PACKED else _packed(frame)


def stacked(table: str, frames: Sequence[pl.DataFrame | Packed]) -> pl.DataFrame | Packed:
    """Join frames, packed where the table is; packed ones are emptied, so that no row is held twice."""
    if table not in PACKED:
        return pl.concat([frame for frame in frames if isinstance(frame, pl.DataFrame)], rechunk=True)
    parts: list[Packed] = []
    for are_packed, group in groupby(frames, lambda frame: isinstance(frame, Packed)):
        if are_packed:
            parts += [part for part in group if isinstance(part, Packed)]
        else:
            parts.append(_packed(pl.concat([one for one in group if isinstance(one, pl.DataFrame)])))
    return _stacked(parts)


def packed_from(rows: pl.LazyFrame) -> Packed:
    """Pack metric rows that are held elsewhere, some at a time.

    They are read once, from the first to the last: a slice of many files reads all that is in front of it.
    """
    is_large = rows.select(pl.len()).collect().item() >= _EVEN_ROWS
    pieces = map(_packed, rows.collect_batches(chunk_size=_PIECE_ROWS, maintain_order=True))
    parts = [_stacked([piece], even=True) if is_large else piece for piece in pieces]
    return _stacked(parts or [_packed(rows.head(0).collect())], even=is_large)


def _packed(frame: pl.DataFrame) -> Packed:
    alone = {column.name: column[0] if len(column) else None for column in frame if _is_alone(column)}
    varied = [frame[name] for name in SHARED if name not in alone]
    begins = _begins(varied, frame.height)
    every = len(begins) == frame.height
    own = [frame[name] for name in frame.columns if name not in {*SHARED, *NAMED, *alone}]
    if not every:
        number = np.repeat(np.arange(len(begins), dtype=np.uint32), np.diff(begins, append=frame.height))
        own.append(as_column(number, RECORD))
    names, codes = _names(frame.select(NAMED))
    records = pl.DataFrame([_short(column if every else column.gather(as_column(begins))) for column in varied])
    own = [column.cast(CODED[column.name]) if column.dtype == pl.String else column.rechunk() for column in own]
    alone = {name: value for name, value in alone.items() if name not in NAMED}
    return Packed(frame.height, len(begins), pl.DataFrame([*own, codes]), records, names, alone)


def _is_alone(column: pl.Series) -> bool:
    """Whether a column holds one value throughout, or none."""
    if column.null_count() == len(column):
        return True
    if column.name == "value" or column.null_count() or column[0] != column[-1]:
        return False
    return bool((column == column[0]).all())


def _begins(columns: Sequence[pl.Series], height: int) -> Rows:
    """The first row of each record: rows that follow each other and share all columns are one."""
    differs = np.zeros(max(height - 1, 0), np.bool_)
    for column in columns:
        if not differs.all():
            differs |= column.slice(1).ne_missing(column.head(height - 1)).to_numpy()
    return np.flatnonzero(np.concatenate([np.ones(min(height, 1), np.bool_), differs])).astype(np.uint32)


def _names(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """The pairs of names in the order of their first rows, and the number of the pair of each row."""
    if (period := _period(frame)) < frame.height:
        names, codes = _names(frame.head(period))
        return names, as_column(np.tile(codes.to_numpy(), frame.height // period + 1)[: frame.height], _CODE)
    pair = np.zeros(frame.height, np.uint64)
    for column in frame:
        number = column.cast(_TEXT).to_physical().fill_null(np.iinfo(np.uint32).max).to_numpy()
        pair = (pair << np.uint64(32)) | number
    firsts = as_column(pair).arg_unique()
    known = pair[firsts.to_numpy()]
    order = np.argsort(known)
    codes = order.astype(_code_type(len(known)))[np.searchsorted(known[order], pair)]
    return frame[firsts], as_column(codes, _CODE)


def _period(frame: pl.DataFrame) -> int:
    """After how many rows the same names follow each other again, throughout; all rows where they do not.

    So do those of most logs and tables. To compare a text with another takes a tenth of what its number takes.
    """
    first, *others = frame["raw_name"].head(_LONGEST_RECORD).to_list() or [None]
    period = others.index(first) + 1 if first in others else frame.height
    again = (column.slice(period).equals(column.head(frame.height - period)) for column in frame)
    return period if all(again) else frame.height


def _code_type(count: int) -> np.dtype[Any]:
    return np.min_scalar_type(max(count - 1, 0))


def _short(column: pl.Series) -> pl.Series:
    if column.dtype == pl.String:
        return column.cast(_TEXT)
    return column.shrink_dtype() if column.dtype.is_integer() else column.rechunk()


def _stacked(parts: Sequence[Packed], *, even: bool = False) -> Packed:
    """Join packed rows; with `even`, numbers are held by a line where that is shorter."""
    parts = [part for part in parts if part.height] or parts[:1]
    if len(parts) == 1 and not even:
        return parts[0]
    alone = {
        name: value
        for name, value in parts[0].alone.items()
        if all(name in part.alone and part.alone[name] == value for part in parts)
    }
    continues = [False, *(_continues(one, other) for one, other in pairwise(parts))]
    height, n_records = sum(part.height for part in parts), sum(part.n_records for part in parts) - sum(continues)
    names, codes = _joined_names(parts)
    own, records, evens, often = [codes], list[pl.Series](), dict[str, Even](), np.zeros(0)
    for name in (RECORD, *TABLES[_TABLE]):
        if name in {*NAMED, *alone} or (name == RECORD and n_records == height):
            continue
        if name == "value" and even:
            values, often = _short_values(parts)
            own += values
            continue
        column = _joined_records(parts, continues) if name == RECORD else _joined_values(name, parts, continues)
        found = evened(column.to_numpy()) if even and column.dtype.is_integer() and not column.null_count() else None
        if found is None:
            (records if name in SHARED else own).append(column)
        else:
            evens[name] = found
    return Packed(height, n_records, pl.DataFrame(own), pl.DataFrame(records), names, alone, evens, often)


def _continues(one: Packed, other: Packed) -> bool:
    """Whether the first record of the other goes on with the last one of this."""
    return all(one.cell(name, one.n_records - 1) == other.cell(name, 0) for name in SHARED)


def _joined_names(parts: Sequence[Packed]) -> tuple[pl.DataFrame, pl.Series]:
    names = pl.concat([part.names for part in parts]).unique(maintain_order=True)
    places = {pair: place for place, pair in enumerate(names.iter_rows())}
    dtype = _code_type(len(places))
    codes: list[pl.Series] = []
    for part in parts:
        place = np.array([places[pair] for pair in part.names.iter_rows()], dtype)
        codes.append(as_column(place[part.own.drop_in_place(_CODE).to_numpy()], _CODE))
    return names, pl.concat(codes, rechunk=True)


def _joined_records(parts: Sequence[Packed], continues: Sequence[bool]) -> pl.Series:
    first, found = 0, list[pl.Series]()
    for part, same in zip(parts, continues, strict=True):
        first -= int(same)
        found.append(part.record_of() + pl.Series([first], dtype=pl.UInt32))
        first += part.n_records
        if RECORD in part.own.columns:
            part.own.drop_in_place(RECORD)
    return _joined(found)


def _joined_values(name: str, parts: Sequence[Packed], continues: Sequence[bool]) -> pl.Series:
    skipped = [int(same and name in SHARED) for same in continues]
    return _joined([part.taken(name).slice(skip) for part, skip in zip(parts, skipped, strict=True)])


def _joined(columns: list[pl.Series]) -> pl.Series:
    """Columns one behind the other, as short as the longest of them; each is let go of before the next is made."""
    dtype = pl.concat([column.clear().to_frame() for column in columns], how="vertical_relaxed").dtypes[0]
    if len(columns) == 1 or not dtype.is_numeric() or any(column.null_count() for column in columns):
        return pl.concat([column.cast(dtype) for column in columns], rechunk=True)
    name, ends = columns[0].name, np.cumsum([len(column) for column in columns]).tolist()
    found = np.empty(ends[-1], columns[0].clear().cast(dtype).to_numpy().dtype)
    for place, end in enumerate(ends):
        found[end - len(columns[place]) : end] = columns[place].to_numpy()
        columns[place] = columns[place].clear()
    return as_column(found, name)


def _of(column: pl.Series, rows: Rows | None) -> pl.Series:
    return column if rows is None else column[as_column(rows)]  # no query


def _series(name: str, even: Even, rows: Rows | None = None, kind: type[np.integer[Any]] = np.int64) -> pl.Series:
    return as_column(even.whole(kind) if rows is None else even.take(rows).astype(kind, copy=False), name)


def _short_values(parts: Sequence[Packed]) -> tuple[list[pl.Series], NDArray[np.float64]]:
    """The values of some parts, in 32 bits where all are exact so, words beside how each is read; and `often`."""
    if len(parts) == 1:
        return _worded(parts[0].taken("value"))
    dtypes = {part.own["value"].dtype if "value" in part.own.columns else pl.Null for part in parts}
    if pl.Int32 not in dtypes or not dtypes <= {pl.Int32, pl.Float32}:
        return [_joined_values("value", parts, [False] * len(parts))], np.zeros(0)
    firsts = np.cumsum([0, *(len(part.often) for part in parts)])
    held = [_words(part, int(first)) for part, first in zip(parts, firsts, strict=False)]
    columns = [_joined(column) for column in map(list, zip(*held, strict=True))]
    return columns, np.concatenate([part.often for part in parts])


def _worded(values: pl.Series) -> tuple[list[pl.Series], NDArray[np.float64]]:
    found = None if values.dtype != pl.Float64 or values.null_count() else worded(values.to_numpy())
    if found is None:
        return [values], np.zeros(0)
    if (found.kinds == SINGLE).all():
        return [as_column(found.words.view(np.float32), "value")], found.often
    return [as_column(found.words, "value"), as_column(found.kinds, _KIND)], found.often


def _words(part: Packed, first: int) -> tuple[pl.Series, pl.Series]:
    """The words of a part whose numbers of `often` follow so many others, and their kinds."""
    words = part.own.drop_in_place("value")
    if _KIND not in part.own.columns:
        kinds = np.full(part.height, SINGLE, np.uint8)
        return as_column(words.to_numpy().view(np.int32), "value"), as_column(kinds, _KIND)
    kinds = part.own.drop_in_place(_KIND)
    if first and len(part.often):
        words = as_column(words.to_numpy() + np.int32(first) * (kinds.to_numpy() == OFTEN), "value")
    return words, kinds


def _double(column: pl.Series) -> pl.Series:
    return column.cast(pl.Float64) if column.dtype == pl.Float32 else column
