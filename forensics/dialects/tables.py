"""The tables of this package: rows of cells between tabs, `#` begins a line that is none."""

from __future__ import annotations

from importlib.resources import files


def rows(table: str) -> list[list[str]]:
    """Give the cells of each row of a table, as they stand there."""
    text = (files("forensics.dialects") / table).read_text(encoding="utf-8")
    return [row.split("\t") for row in text.splitlines() if row and not row.startswith("#")]
