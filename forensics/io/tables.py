"""The tables that a package brings: rows of cells between tabs; a line that begins with `#` is a remark."""

from __future__ import annotations

from importlib.resources import files


def table_rows(package: str, table: str) -> list[list[str]]:
    """Give the cells of each row of a table in the folder of a package, as they are written."""
    text = (files(package) / table).read_text(encoding="utf-8")
    return [row.split("\t") for row in text.splitlines() if row and not row.startswith("#")]


def named_rows(package: str, table: str) -> list[dict[str, str]]:
    """Give each row by the names of its columns, which the first row holds."""
    head, *rows = table_rows(package, table)
    return [dict(zip(head, row, strict=True)) for row in rows]
