"""The part of each step that trains nothing: the wait for data, and padding, as shares of the printed whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.analyses.pace.names import pace_of
from forensics.case.series import keys_of, metric_rows
from forensics.case.steps import WRITER, ordered
from forensics.io.tables import table_rows
from forensics.knowledge.vocabulary import in_english
from forensics.patterns import lazily
from forensics.stats.spread import median_of
from forensics.store.run import Run, derived

#: A count from the start has at least doubled within a run of some records.
_GROWN = 2.0
#: Records on either side of a step that a median needs: of five, two may be outliers.
_FEWEST = 5
_WORDS = lazily(r"[\s\-]+")
_IN_MS = lazily(r"(?i)(?:[\W_]|^)ms\W?$")


class Part(Struct, frozen=True):
    """The median share of a part in its whole over the records of one source; `amount` and `whole` are medians.

    `first` and `last` are metric rows of the part. Seconds for data, tokens for padding; `whole` is None where the
    program prints the share itself. `of_sums` is the share of the sums without the record of the largest part: a loader
    that delivers in bursts lets few steps wait for long, and the median one not at all.
    """

    share: float
    of_sums: float
    amount: float
    whole: float | None
    records: int
    first: Mapping[str, Any]
    last: Mapping[str, Any]


@derived
def data_waits(run: Run) -> tuple[Part, ...]:
    """The wait for data as a share of the step, where a record prints both times; one for each source and rank."""
    pairs = ((name or "", raw or "") for name, raw in _names(run))
    steps = {raw: one.scale for name, raw in pairs if (one := _step(name, raw)) is not None}
    return tuple(_parts(run, named(run, "data"), steps))


@derived
def paddings(run: Run) -> tuple[Part, ...]:
    """Padding as a share of the tokens of a step, where a record prints both or the share itself."""
    filled = tuple(_parts(run, named(run, "filled"), named(run, "tokens")))
    unfilled = [Part(1 - p.share, 1 - p.of_sums, p.amount, p.whole, p.records, p.first, p.last) for p in filled]
    counted, told = _parts(run, named(run, "pads"), named(run, "tokens")), _parts(run, named(run, "padding"), {})
    return (*unfilled, *(one for one in counted if one.whole is not None), *told)


class Rise(Struct, frozen=True):
    """The median seconds of a part before some step and from it on, with the last record before and the first after."""

    before: float
    after: float
    good: Mapping[str, Any]
    bad: Mapping[str, Any]

    @property
    def added(self) -> float:
        """The seconds that each step takes longer by it."""
        return self.after - self.before


def data_rise(run: Run, step: int, rank: int | None) -> Rise | None:
    """Give by how much a rank's wait for data rose at a step; None where too few records on a side tell it."""
    names = named(run, "data")
    rows = _rows(run, names).filter(pl.col("at").is_not_null() & pl.col("rank").eq_missing(rank)) if names else None
    found: list[Rise] = []
    for _, own in rows.group_by("source", "attempt", "raw_name", maintain_order=True) if rows is not None else ():
        early, late = own.filter(pl.col("at") < step), own.filter(pl.col("at") >= step)
        if min(early.height, late.height) >= _FEWEST:
            sides = (median_of(early["value"].to_numpy()), median_of(late["value"].to_numpy()))
            found.append(Rise(*sides, early.row(-1, named=True), late.row(0, named=True)))
    return max(found, key=lambda rise: rise.added, default=None)


def _step(name: str, raw: str) -> Any:  # noqa: ANN401 - a name of a pace, or None
    found = pace_of(name, raw)
    return found if found is not None and found.form in {"time", "anew"} and found.unit == "step" else None


def _parts(run: Run, parts: Mapping[str, float], wholes: Mapping[str, float]) -> Iterator[Part]:
    """Join parts with wholes of the same record, else take the parts as shares."""
    if not parts:
        return
    mine = _rows(run, parts)
    if not wholes:
        for _, rows in mine.group_by(WRITER, maintain_order=True):
            yield _part(rows.with_columns(share=pl.col("value"), whole=pl.lit(None, dtype=pl.Float64)))
        return
    theirs = _rows(run, wholes)
    both = _joined(mine, theirs, "seq")
    if both.is_empty():  # an event file has a record for each number of a step
        both = _joined(mine.drop_nulls("at").unique([*WRITER, "at"], keep="last", maintain_order=True), theirs, "at")
    # a time beside the step's own, and not in it, is a part of their sum
    both = both.with_columns(share=pl.col("value") / pl.max_horizontal("whole", "value"))
    for _, rows in both.group_by(WRITER, maintain_order=True):
        if _counts_up(rows["value"]) or not _counts_up(rows["whole"]):
            yield _part(rows)


def _joined(mine: pl.DataFrame, theirs: pl.DataFrame, key: str) -> pl.DataFrame:
    """Parts with `whole`, the first positive one that shares their record, or their step."""
    on = [*WRITER, key]
    wholes = theirs.filter(pl.col("value") > 0).unique(on, keep="first").select(*on, whole="value")
    return mine.join(wholes, on=on, nulls_equal=True, maintain_order="left")


def _counts_up(values: pl.Series) -> bool:
    """Whether a number counts from the start of the run, which is no whole of what one step prints."""
    return values.is_sorted() and float(values[-1]) > _GROWN * float(values[0])


def _part(rows: pl.DataFrame) -> Part:
    late = rows.slice(rows.height // 10)
    whole = late["whole"].median()
    rest = late.sort("value").head(late.height - 1).select(pl.col("value", "whole").sum())
    return Part(
        share=float(late["share"].median() or 0.0),  # type: ignore[arg-type] # a number: the column is Float64
        of_sums=min(1.0, rest["value"].item() / rest["whole"].item()) if rest["whole"].item() else 0.0,
        amount=float(late["value"].median() or 0.0),  # type: ignore[arg-type] # a number: the column is Float64
        whole=whole if isinstance(whole, float) else None,
        records=late.height,
        first=late.row(0, named=True),
        last=late.row(-1, named=True),
    )


def _rows(run: Run, names: Mapping[str, float]) -> pl.DataFrame:
    """The finite values of some names, in seconds or tokens."""
    rows = ordered(
        metric_rows(run, pl.col("raw_name").is_in(list(names))).filter(pl.col("value").is_finite())
    ).collect()
    known = {raw: scale for raw, scale in names.items() if scale != 1}
    canonical = pl.col("name").str.ends_with("_s")
    scale = pl.when(canonical).then(1.0).otherwise(pl.col("raw_name").replace_strict(known, default=1.0))
    return rows.with_columns(value=pl.col("value") * scale)


def named(run: Run, part: str) -> dict[str, float]:
    """Give the printed names of one kind of part of `parts.tsv`, with the factor to its unit."""
    names = ((name, raw) for name, raw in _names(run) if name is not None and raw is not None)
    told = ((raw, _scale(part, name) or _scale(part, raw)) for name, raw in names)
    return {raw: scale for raw, scale in told if scale is not None}


def seconds_of_parts(run: Run) -> dict[str, float]:
    """Give the printed names of all parts of a step that are times, with the factor to seconds."""
    found = {raw: scale for part in ("data", "own", "waiting") for raw, scale in named(run, part).items()}
    return {raw: 1e-3 if scale == 1 and _IN_MS.search(raw) else scale for raw, scale in found.items()}


@derived
def _names(run: Run) -> list[tuple[str | None, str | None]]:
    """The canonical and the printed name of each metric, in the order in which they came."""
    return keys_of(run).select("name", "raw_name").unique(maintain_order=True).rows()


def is_part(name: str, *parts: str) -> bool:
    """Whether a metric name names a part of a step: one of these kinds, or of whatever kind."""
    return any(_scale(kind, name) is not None for kind in parts or {kind for kind, _, _ in _table()})


def _scale(part: str, name: str) -> float | None:
    last = _WORDS.sub("_", in_english(name).lower().strip()).rsplit("/", 1)[-1]
    return next((scale for kind, pattern, scale in _table() if kind == part and pattern.fullmatch(last)), None)


@cache
def _table() -> tuple[tuple[str, re.Pattern[str], float], ...]:
    rows = table_rows("forensics.analyses.pace", "parts.tsv")
    return tuple((part, re.compile(pattern), float(scale)) for pattern, part, scale, _ in rows)
