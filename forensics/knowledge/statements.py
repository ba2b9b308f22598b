"""Statements: lines in which a library names the rank at fault, or a host reports a fault, from `statements.jsonl`.

A row has `needle` (a literal of the line), `pattern` (its groups are `ranks`, which it names, `pid` and `xid`), `by`
(library or host), `cause`, `words` (what a rank did, or what the fault is), `weight` as a clue where it always has the
same, and `source`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from forensics.knowledge._rows import rows_of


@dataclass(frozen=True, slots=True)
class Statement:
    """One row."""

    needle: str
    pattern: re.Pattern[str]
    by: str
    cause: str
    words: str
    source: str
    weight: float = 0.0


@cache
def statements(by: str) -> tuple[Statement, ...]:
    """Every row of those who say it: `library` or `host`."""
    rows = (row for row in rows_of("statements.jsonl") if row["by"] == by)
    return tuple(replace(Statement(**row), pattern=re.compile(row["pattern"])) for row in rows)
