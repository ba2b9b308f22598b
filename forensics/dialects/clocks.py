"""The days of a log that prints times without them, from a date in one of its other lines.

Times of day go on from line to line and begin again at midnight. One line that prints a date as well, as a scheduler's
last one does, says which day each of them is of; where dates disagree, or the times count from the start, none does.
In a log without any date the first day is 1970-01-01: how long a step took is known, and when is not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import ceil, floor

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.dialects.stamps import DATED, OF_DAY, SHORT, SINCE_START, TIME_OF_DAY, Form
from forensics.patterns import lazily

_DAY_S, _DAY_NS = 86400, 86400 * 10**9
#: Ranks and handlers print a little out of order.
_SLACK_S = 60.0
#: A job that begins so soon after midnight counts from its own start.
_ELAPSED_S = 300.0
_HEAD_BYTES, _LINE_CHARS = 8 << 10, 400
#: Lines that show whether times count from the start, and, evenly taken, whether any other line has a date.
_LOOKED_AT, _MOST_LINES = 400, 2000
_FEWEST = 3
_OF_DAY = lazily(TIME_OF_DAY.encode(), re.MULTILINE)
#: A date and a time from behind the year on: what begins with one of two characters is found in a third of the time.
_DATED = lazily(rb"[-/](?<=\d{4}[-/])(?<!\d{5}[-/])[01]\d[-/][0-3]\d[ T][0-2]\d:[0-5]\d:[0-5]\d")
_YEAR_CHARS = 4


class Clock(Struct, frozen=True):
    """Places in a log, as bytes from its begin, and when what is there was written."""

    at: tuple[int, ...]
    t_ns: tuple[int, ...]

    def dated(self, t_ns: pl.Series, byte: pl.Series) -> pl.Series:
        """Give the times that are of no day (1970-01-01) that of the known place before them, or of the next day."""
        bare = t_ns.is_between(0, _DAY_NS - 1).fill_null(value=False)
        if not bare.any():
            return t_ns
        time, place = t_ns.filter(bare).to_numpy(), byte.filter(bare).to_numpy()
        near = np.asarray(self.t_ns)[np.maximum(np.searchsorted(self.at, place, side="right") - 1, 0)]
        whole = time + np.rint((near - time) / _DAY_NS).astype(np.int64) * _DAY_NS
        return t_ns.scatter(bare.arg_true(), whole)


class Calendar(Struct, frozen=True):
    """What stamps leave out: the year of those that print none, and the clock of those without a day.

    In an undated log, which prints no date anywhere, times may count from the start. The second of two numbers is
    `short_s` seconds, 1 or 60; 0 where they are no time.
    """

    year: int = 1970
    clock: Clock | None = None
    is_undated: bool = False
    short_s: int = 0

    def dated(self, t_ns: pl.Series, byte: pl.Series) -> pl.Series:
        """Give the times of lines at these places of the log, each of its day."""
        return t_ns if self.clock is None else self.clock.dated(t_ns, byte)


def calendar_of(year: int, parts: Sequence[tuple[int, bytes]], sample: Sequence[str]) -> Calendar:
    """Give the calendar of a log by parts of it, each with its place, and by some of its lines."""
    # most logs print no time that counts from the start, and need no look for a date
    is_timed = _have(sample[:_LOOKED_AT], (*SINCE_START, *SHORT, OF_DAY))
    is_dated = is_timed and _have(sample[:: len(sample) // _MOST_LINES + 1], DATED)
    is_undated = is_timed and not is_dated and not any(_DATED.search(part) for _, part in parts)
    short_s = _short_s(sample[:_LOOKED_AT]) if is_undated else 0
    return Calendar(_year_of(parts, year), clock_of(parts, is_undated=is_undated), is_undated, short_s)


def _short_s(lines: Sequence[str]) -> int:
    """Give the seconds in the second number of times of two numbers, as `9:05`.

    It is 1 where they begin near zero, and so count from the start, 60 where they are of a day; 0 where they fall, or
    are too few.
    """
    hits = (form.pattern.search(line[:_LINE_CHARS]) for line in lines for form in SHORT)
    told = [int(first) * 60 + int(second) for hit in hits if hit for first, second in [hit[1].split(":")]]
    if len(told) < _FEWEST or told != sorted(told) or told[0] == told[-1]:
        return 0
    if told[0] < _ELAPSED_S:
        return 1
    return 60 if told[-1] * 60 < _DAY_S else 0


def _year_of(parts: Sequence[tuple[int, bytes]], year: int) -> int:
    """Give the year that other stamps of the log print most, else the given one: a file may be copied later."""
    years = Counter(printed[:_YEAR_CHARS] for _, part in parts for _, printed in _dates(part))
    printed, times = years.most_common(1)[0] if years else (b"", 0)
    return int(printed) if times >= _FEWEST else year


def _dates(part: bytes) -> Iterator[tuple[int, bytes]]:
    """Where each date with a time begins, and how it is printed."""
    for found in _DATED.finditer(part):
        begin = found.start() - _YEAR_CHARS
        yield begin, part[begin : found.end()]


def _have(lines: Sequence[str], forms: Sequence[Form]) -> bool:
    begins = [line[:_LINE_CHARS] for line in lines]
    return any(any(map(form.pattern.search, begins)) for form in forms)


def clock_of(parts: Sequence[tuple[int, bytes]], *, is_undated: bool) -> Clock | None:
    """Read the clock of a log in parts of it, each with its place; None where it prints none, or nothing dates it.

    The first day of an undated log is 1970-01-01.
    """
    if not parts or _OF_DAY.search(parts[0][1][:_HEAD_BYTES]) is None:
        return None
    told = [(place + m.start(1), _seconds(m[1])) for place, part in parts for m in _OF_DAY.finditer(part)]
    if len(told) < _FEWEST:
        return None
    at = np.array([place for place, _ in told])
    time_s = np.unwrap(np.array([second for _, second in told], np.float64), period=_DAY_S)
    days = {
        day
        for place, part in parts
        for begin, printed in _dates(part)
        if (day := _day_of(place + begin, printed.decode(), at, time_s)) is not None
    }
    if not is_undated and (len(days) != 1 or told[0][1] < _ELAPSED_S):
        return None
    kept = np.flatnonzero(np.diff(time_s // 3600, prepend=np.nan))
    t_ns = (time_s[kept] + (0 if is_undated else days.pop()) * _DAY_S).astype(np.int64) * 10**9
    return Clock(tuple(at[kept].tolist()), tuple(t_ns.tolist()))


def _seconds(printed: bytes) -> int:
    hours, minutes, seconds = printed.split(b":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def _day_of(place: int, printed: str, at: np.ndarray, time_s: np.ndarray) -> int | None:
    """The day of the first time of a log by a date at some place; None where those before and behind it disagree."""
    try:
        date_s = datetime.fromisoformat(re.sub("/", "-", printed)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    i = int(np.searchsorted(at, place))
    days = {floor((date_s + _SLACK_S - time_s[i - 1]) / _DAY_S)} if i else set[int]()
    days |= {ceil((date_s - _SLACK_S - time_s[i]) / _DAY_S)} if i < len(at) else set[int]()
    return days.pop() if len(days) == 1 else None
