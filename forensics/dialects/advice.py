"""What a known error means and what to do about it, from the row of the table of signatures that it fits."""

from __future__ import annotations

from typing import NamedTuple

from forensics.dialects.events import signatures

#: Rows that say why a program failed; the others only stand beside such lines.
_ERRORS = ("root", "symptom")


class Advice(NamedTuple):
    """Why a program prints such an error and what mends it, one sentence each, and the row that says so."""

    why: str
    fix: str
    line: str
    cause: str
    family: str
    source: str


def advice(code: str, text: str = "") -> Advice | None:
    """Give the advice for an event by its code, else by its text (an exception and its message); None if unknown."""
    rows = signatures.table()
    found = next((row for row in rows if row.id == code), None)
    if found is None and text:
        near = (row for row in rows if row.role in _ERRORS and any(needle in text for needle in row.needles))
        found = next((row for row in near if row.compiled.search(text)), None)
    return None if found is None else _of(found)


def advice_for(cause: str) -> Advice | None:
    """Give the advice of the first row of a cause; None where no line speaks of it."""
    return next((_of(row) for row in signatures.table() if row.cause == cause), None)


def _of(row: signatures.Signature) -> Advice:
    return Advice(row.why, row.fix, row.id, row.cause, row.family, row.source)
