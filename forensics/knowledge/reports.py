"""What reports of a gone process mean where nothing else explains them, by their cause, from `failures/reports.jsonl`.

A row has `cause`, that of all reports (empty: any other), and of one of them where it holds `beside` others, or, with
`said`, of a run that names one rank at most, where every report fits that pattern; `means`, the cause that is given;
`is_own` of an error of the program, of which only the words are missing; `title`, `because` and `next` of the finding;
and `source`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.knowledge._rows import Row, rows_of


class Report(Row, frozen=True):
    """One row; the fields are those of the table."""

    cause: str
    means: str
    title: str
    because: str
    next: str
    source: str
    is_own: bool = False
    beside: bool = False
    said: str = ""

    @property
    def is_of_its_end(self) -> bool:
        """Whether a process says by these words how it ended itself."""
        return self.is_own and self.means == self.cause


def report(cause: str, *others: str, said: Sequence[str] = ()) -> Report:
    """Give what reports of these causes mean: the first row that holds beside the others, else that of any.

    `said`: the words of all reports, where the run names no second rank that could be the peer.
    """
    every, rows = {cause, *others}, rows_of("failures/reports.jsonl", Report)
    own = (row for row in rows if row.said and {row.cause} == every)
    told = next((row for row in own if said and all(re.search(row.said, words) for words in said)), None)
    if told is not None:
        return told
    by_cause = {row.cause: row for row in rows if not row.said}
    if len(every) == 1 and cause in by_cause:
        return by_cause[cause]
    return next((row for row in by_cause.values() if row.beside and row.cause in every), by_cause[""])
