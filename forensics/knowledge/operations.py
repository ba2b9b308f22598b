"""Operations that leave the finite range: why, and how each is guarded, from `failures/operations.jsonl`.

A row has `operation`, `names` (a pattern over the name of a backward function or a module), `why`, `fix` (an order,
without its end) and `source`. The first row whose pattern fits holds.
"""

from __future__ import annotations

import re

from forensics.knowledge._rows import Row, rows_of


class Operation(Row, frozen=True):
    """One kind of operation."""

    operation: str
    names: str
    why: str
    fix: str
    source: str


def operations() -> tuple[Operation, ...]:
    """Every kind, in the order of the table."""
    return rows_of("failures/operations.jsonl", Operation)


def operation_of(name: str) -> Operation | None:
    """Give the kind of a backward function or a module by its name; None where the name says nothing."""
    return next((one for one in operations() if re.search(one.names, name)), None)
