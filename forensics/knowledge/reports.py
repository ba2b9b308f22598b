"""What reports of a gone process mean where nothing else explains them, by their cause, from `reports.jsonl`.

A row has `cause`, that of all reports (empty: any other); `means`, the cause that is given; `is_own` of an error of
the program, of which only the words are missing; `title`, `because` and `next` of the finding; and `source`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from forensics.knowledge._rows import rows_of


@dataclass(frozen=True, slots=True)
class Report:
    """One row; the fields are those of the table."""

    cause: str
    means: str
    title: str
    because: str
    next: str
    source: str
    is_own: bool = False


@cache
def _by_cause() -> Mapping[str, Report]:
    return {row["cause"]: Report(**row) for row in rows_of("reports.jsonl")}


def report(cause: str) -> Report:
    """Give what reports of a cause mean; those of several causes are asked for by an empty one."""
    return _by_cause().get(cause) or _by_cause()[""]
