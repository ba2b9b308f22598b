"""One step axis and one order of records, whichever of `step` and `gstep` a file carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forensics.io.columns import as_column

#: Who writes records: one rank, in one attempt, in one source.
WRITER = ("source", "attempt", "rank")
#: What makes a series: the same printed name by one writer.
SERIES = (*WRITER, "raw_name")


def of_training() -> pl.Expr:
    """Rows that training itself logged, and no evaluation."""
    return ~pl.col("name").str.starts_with("eval")


def at() -> pl.Expr:
    """The optimizer step where a record gives it, else the file's own, as a tracker counts its records; else null."""
    return pl.coalesce("gstep", "step").alias("at")


def in_file() -> pl.Expr:
    """The place of a row in its file: its line, else its byte, else the number of its record; 0 without any."""
    return pl.coalesce("line", "byte", "seq").fill_null(0)


def step_of(row: Mapping[str, Any]) -> int | None:
    """Give the same of one row."""
    return row["gstep"] if row["gstep"] is not None else row["step"]


def ordered(metrics: pl.LazyFrame) -> pl.LazyFrame:
    """Metric rows with `at`, in the order of their sources' records; a missing attempt is attempt 0."""
    return in_order(_with_at(metrics), "source", "attempt", "seq")


def by_record(metrics: pl.LazyFrame) -> pl.LazyFrame:
    """The same rows, each source's in the order of its records, but rows of several sources mixed.

    One key sorts ten times faster than three, which is what a rule needs that looks at one source at a time.
    """
    return in_order(_with_at(metrics), "seq")


def _with_at(metrics: pl.LazyFrame) -> pl.LazyFrame:
    return metrics.with_columns(at(), pl.col("attempt").fill_null(0))


def in_order(rows: pl.LazyFrame, *keys: str) -> pl.LazyFrame:
    """Sort rows that are not sorted yet: of a million rows that takes half a second and three times their memory.

    Only the keys are looked at: the other columns are made where they are asked for.
    """
    places = rows.select(keys).collect()
    return rows if are_sorted(places) else rows.sort(*keys, maintain_order=True)


def are_sorted(places: pl.DataFrame) -> bool:
    """Whether rows are in the order of their columns, the first before the others, and none of these is null."""
    if any(column.null_count() for column in places):
        return False
    equal = np.ones(max(places.height - 1, 0), np.bool_)
    for column in places:
        before, after = column.head(len(equal)), column.slice(1)
        same = (after == before).to_numpy()
        if not same.all() and (equal & (after < before).to_numpy()).any():
            return False
        equal &= same
    return True


def first_of_each(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """The first row of each value, in order; rows whose values rise are given as they are."""
    return rows if rises(rows[column]) else rows.unique(column, keep="first", maintain_order=True)


def ends(rows: pl.DataFrame, *same: str, rising: Sequence[str] = ()) -> pl.DataFrame:
    """Rows without those inside a stretch that holds the same in some columns, as an event file has a record a number.

    With `rising`, columns that none of its rows is null in and none falls in: any place between two kept rows then has
    the same row before it, in what the stretch holds.
    """
    return without_inner(rows, ((rows[name], name in rising) for name in (*same, *rising)))


def without_inner(rows: pl.DataFrame, columns: Iterable[tuple[pl.Series, bool]]) -> pl.DataFrame:
    """Rows as `ends` gives them, from columns that are made when asked for, each with whether it rises."""
    count = max(rows.height - 1, 0)
    goes_on = np.ones(count, np.bool_)
    for column, rising in columns:
        before, after = column.head(count), column.slice(1)
        if rising:
            goes_on &= (after >= before).fill_null(value=False).to_numpy()
        elif before.null_count() < count or after.null_count() < count:
            goes_on &= after.eq_missing(before).to_numpy()
        if not goes_on.any():
            return rows
    return rows.filter(~as_column(np.concatenate([[False], goes_on[:-1] & goes_on[1:], [False]])))


def rises(numbers: pl.Series) -> bool:
    """Whether no number is null and each is above the one before."""
    if numbers.null_count():
        return False
    held = numbers.to_numpy()
    return bool((held[1:] > held[:-1]).all())


def where(rows: pl.DataFrame, wanted: NDArray[np.bool_]) -> pl.DataFrame:
    """The rows that are wanted; where only the first ones are not, as one with none before it, nothing is copied."""
    first = int(wanted.argmax()) if len(wanted) else 0
    return rows.slice(first) if wanted[first:].all() else rows[as_column(np.flatnonzero(wanted).astype(np.uint32))]


def key_of(rows: pl.DataFrame, by: Sequence[str]) -> tuple[Any, ...]:
    """What rows of one key have in some columns, without a query: a run of many files asks it of each."""
    return tuple(rows.get_column(name)[0] for name in by)


def only(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Rows with some of their columns, without a query."""
    return pl.DataFrame([rows.get_column(name) for name in names])


def parts(rows: pl.DataFrame, by: Sequence[str]) -> list[pl.DataFrame]:
    """The rows of each key, in order of their first ones; where all have one key nothing is copied."""
    is_one = rows.height > 0 and all(_holds_one(rows.get_column(name)) for name in by)
    return [rows] if is_one else rows.partition_by(by, maintain_order=True)


def _holds_one(column: pl.Series) -> bool:
    """Whether all values of a column are the same, or all are null, without a query."""
    if missing := column.null_count():
        return missing == len(column)
    first = column[0]
    return bool(column[-1] == first and (column == first).all())
