"""The numbers in a message of a failed allocation, clause by clause, from `machines/allocations.jsonl`.

A row has `row` (its name), `number` (what the clause tells: `tried`, `capacity`, `free`, `allocated`…), `words` (a
search, `{v}` where the size is), `like` (a clause as it is printed) and `source`. A clause has a row and not a message,
so that a version that leaves one out or adds one is still read; of one number the first row that fits holds.
"""

from __future__ import annotations

import re
from functools import cache

from forensics.knowledge._rows import Row, rows_of

#: A size as allocators print it: a number and its unit.
SIZE = r"(\d[\d.,]*) ?(bytes?|[KMGT]i?B|[KMGT]\b|B\b)"


class Clause(Row, frozen=True):
    """One row; the fields are those of the table."""

    row: str
    number: str
    words: str
    like: str
    source: str

    @property
    def compiled(self) -> re.Pattern[str]:
        """The search; its groups are the number and its unit."""
        return re.compile(self.words.replace("{v}", SIZE))


@cache
def clauses() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Give what each clause tells, with its search, in the order of the table."""
    return tuple((one.number, one.compiled) for one in rows())


def rows() -> tuple[Clause, ...]:
    """Every row."""
    return rows_of("machines/allocations.jsonl", Clause)
