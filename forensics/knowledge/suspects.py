"""What a cause says of the ranks of a hang that clues name for it, from `failures/suspects.jsonl`.

A row has `cause`; `telling`, 0 to 10: of several causes that are said of one rank the most telling one is given;
`marks`: Whether an exit code says that the process aborted. `stands_for`, the cause that is given in its place, with
`deed`, what the rank did as far as it is known then, and `by_exit`, which says that an exit code of the rank gives a
better one; `of_one_rank`, the cause where one rank of several shows it; and `source`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from forensics.knowledge._rows import Row, rows_of
from forensics.knowledge.signals import is_silent

#: A cause that no row ranks says more than most.
_USUAL = 9


class Suspect(Row, frozen=True):
    """One row; the fields are those of the table."""

    cause: str
    source: str = ""
    telling: int = _USUAL
    marks: tuple[str, ...] = ()
    stands_for: str = ""
    deed: str = ""
    by_exit: bool = False
    of_one_rank: str = ""


@cache
def suspects() -> Mapping[str, Suspect]:
    """Give every row by its cause."""
    return {row.cause: row for row in rows_of("failures/suspects.jsonl", Suspect)}


def suspect(cause: str) -> Suspect:
    """Give what is known of a cause; a row of defaults where the table has none."""
    return suspects().get(cause) or Suspect(cause)


def is_absence(cause: str) -> bool:
    """Whether a cause only follows from a rank's being away."""
    return "absence" in suspect(cause).marks


def is_death(cause: str) -> bool:
    """Whether a cause says that a process is gone; that a signal ended it, says that too."""
    return "death" in suspect(cause).marks or is_silent(cause)


def is_start(cause: str) -> bool:
    """Whether a cause says that a job of several ranks never started together."""
    return "start" in suspect(cause).marks
