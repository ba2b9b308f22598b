"""Timestamps of matched lines to nanoseconds since the epoch, read as UTC.

Forms are rows of `stamps.tsv`: `2026-03-28 18:24:52,645`, `W0328 18:24:52.645000`, `[11/07 14:28:51` and others.
Where no year is printed, the given one is taken; a time without a day is one only where the log's clock is known, and a
time since the start only in a log without any date, where it is one of 1970. A zone behind the time is not applied: all
lines of one file share it, and differences are what counts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import polars as pl

from forensics.dialects.clocks import Calendar
from forensics.dialects.stamps import DATED, OF_DAY, SHORT, SINCE_START, Form
from forensics.patterns import lazily

_ROUNDS = 3
_CLOCK = lazily(r"\d:\d+:\d|^[^\w]*\d+(?:\.\d+|:\d\d[\]) |])")
_LOOKED_AT = 40


def _nulls(height: int) -> pl.Series:
    return pl.Series("t_ns", [None], dtype=pl.Int64).new_from_index(0, height)


def _first(lines: list[str], calendar: Calendar) -> tuple[int, Form, int, bool] | None:
    of_day = () if calendar.clock is None else (OF_DAY,)
    short = SHORT if calendar.short_s else ()
    forms = (*DATED, *of_day, *(SINCE_START if calendar.is_undated else ()), *short)
    for index, line in enumerate(lines):
        head = line[:400]
        for form in forms:
            if (found := form.pattern.search(head)) is not None and _is_near(form, found[0], calendar):
                begin, end = found.span(found.lastindex or 0)
                after = head[end : end + 2]
                return index, form, begin, len(after) == 2 and after[0] in ".," and after[1].isdigit()
    return None


def _is_near(form: Form, stamp: str, calendar: Calendar) -> bool:
    """Whether a stamp whose year has two digits is of the year of the log, or the one before: days look like years."""
    if "%y" not in form.spelled:
        return True
    with suppress(ValueError):
        return calendar.year - datetime.strptime(stamp, form.spelled).replace(tzinfo=UTC).year in {0, 1}
    return False


def read(text: pl.Series, calendar: Calendar, *, rounds: int = _ROUNDS, looked_at: int = _LOOKED_AT) -> pl.Series:
    """Time of each line in ns, null where none is found; one without a day is of 1970-01-01 (`Calendar.dated`).

    The layout of the first line that has one (among `looked_at` lines) is tried on all, then that of the first line
    still without a time, in at most `rounds` rounds.
    """
    if not text.null_count():
        return _times_of(text, calendar, rounds, looked_at)
    if text.null_count() == len(text):
        return _nulls(len(text))
    there = text.is_not_null()
    return _nulls(len(text)).scatter(there.arg_true(), _times_of(text.filter(there), calendar, rounds, looked_at))


def _times_of(text: pl.Series, calendar: Calendar, rounds: int, looked_at: int) -> pl.Series:
    """The times of texts; none of them is null."""
    first = _first(text.head(looked_at).to_list(), calendar)
    if not rounds or first is None:
        return _nulls(len(text))
    _, form, at, fraction = first
    found = _parsed(text, form, at, calendar, fraction=fraction).rename("t_ns")
    missing = found.null_count()
    if not missing or missing == len(text):
        return found
    todo = found.is_null()
    return found.scatter(todo.arg_true(), _times_of(text.filter(todo), calendar, rounds - 1, looked_at))


def _parsed(lines: pl.Series, form: Form, at: int, calendar: Calendar, *, fraction: bool) -> pl.Series:
    line = pl.col("line")
    if not form.width:
        told = _seconds(line.str.extract(form.source, 1)) * (calendar.short_s if form in SHORT else 1)
        return lines.to_frame("line").select_seq(told).to_series()
    stamp, spelled = line.str.slice(at, form.width), form.spelled
    if form is OF_DAY:
        stamp, spelled = pl.lit("1970-01-01 ") + stamp, f"%Y-%m-%d {spelled}"
    elif not form.year:
        stamp = pl.lit(f"{calendar.year:04d} ") + (stamp.str.zfill(13) if form.width == 12 else stamp)
        spelled = f"%Y {spelled}"
    whole = stamp.str.to_datetime(spelled, strict=False, time_unit="ns").cast(pl.Int64)
    if fraction:
        digits = line.str.slice(at + form.width + 1, 9).str.extract(r"^(\d{1,9})", 1)
        whole += digits.str.pad_end(9, "0").cast(pl.Int64, strict=False).fill_null(0)
    return lines.to_frame("line").select_seq(whole).to_series()


def _seconds(printed: pl.Expr) -> pl.Expr:
    """Seconds, or hours, minutes and seconds, in nanoseconds."""
    parts = printed.str.split(":").list
    told = (parts.get(-1, null_on_oob=True), parts.get(-2, null_on_oob=True), parts.get(-3, null_on_oob=True))
    seconds = [part.cast(pl.Float64, strict=False) * 60**power for power, part in enumerate(told)]
    whole = pl.when(told[0].is_not_null()).then(pl.sum_horizontal(seconds))
    return (whole * 1e6).round().cast(pl.Int64, strict=False) * 1000  # a float of today holds no nanoseconds


def reader_like(sample: str, calendar: Calendar) -> Callable[[pl.Series], pl.Series]:
    """A reader of lines that differ from `sample` in their digits only: it knows where their time stands, or none."""
    first = _first([sample], calendar)
    if first is not None:
        _, form, at, fraction = first

        def there(text: pl.Series) -> pl.Series:
            found = _parsed(text, form, at, calendar, fraction=fraction).rename("t_ns")
            return found if not found.null_count() else read(text, calendar)

        return there
    if _CLOCK.search(sample):
        return lambda text: read(text, calendar)
    return lambda text: _nulls(len(text))


def of_groups(printed: pl.Series, calendar: Calendar) -> pl.Series:
    """Times that a dialect's group `t` captured: epoch seconds or milliseconds, or any form that `read` knows."""
    number = printed.cast(pl.Float64, strict=False)
    if number.null_count() == len(number):
        return read(printed, calendar)
    scaled = number.to_frame("v").select(
        v=pl.when(pl.col("v") > 1e17)
        .then(pl.col("v"))
        .when(pl.col("v") > 1e11)
        .then(pl.col("v") * 1e6)
        .when(pl.col("v") > 1e8)
        .then(pl.col("v") * 1e9)
        .otherwise(None)
    )["v"]
    return scaled.cast(pl.Int64, strict=False)
