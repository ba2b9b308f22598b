"""How programs print times: the rows of `stamps.tsv`, and a time of day without its date."""

from __future__ import annotations

import re

from msgspec import Struct

from forensics.io.tables import table_rows
from forensics.patterns import lazily

#: How a row spells hours, minutes and seconds since the start, or seconds alone.
ELAPSED = "elapsed"
#: How it spells two numbers: minutes and seconds since the start, or hours and minutes of a day.
_SHORT = "short"
#: At the begin of a line, behind levels, ranks and signs alone.
TIME_OF_DAY = r"^(?:[^\w\n\r]|_|[A-Z]+[0-9]*\b|rank ?[0-9]+)*?([0-2]\d:[0-5]\d:[0-5]\d)(?=[\],.)|\s])"


class Form(Struct, frozen=True):
    """One way to print a time: where it is found, its width up to the seconds, and its parts as groups.

    A `width` of 0 takes a number of seconds, or the hours and minutes before them, from the pattern's group.
    """

    source: str
    pattern: re.Pattern[str]
    width: int
    spelled: str
    year: bool


FORMS = tuple(
    Form(pattern, lazily(pattern), int(width), spelled, year=bool(year))
    for pattern, width, spelled, year, _ in table_rows("forensics.dialects", "stamps.tsv")
)
#: Those that say when a line was printed, and those that say how long after the start.
DATED = tuple(form for form in FORMS if form.spelled not in {ELAPSED, _SHORT})
SINCE_START = tuple(form for form in FORMS if form.spelled == ELAPSED)
SHORT = tuple(form for form in FORMS if form.spelled == _SHORT)
OF_DAY = Form(TIME_OF_DAY, lazily(TIME_OF_DAY), 8, "%H:%M:%S", year=False)
