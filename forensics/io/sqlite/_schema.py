"""What a `CREATE TABLE` statement says of the columns of a table; the statement is read as words and never run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SQL_CHARS = 1 << 16
_TOKEN = re.compile(
    r"--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?+"
    r"|\"(?:[^\"]|\"\")*+\"|`(?:[^`]|``)*+`|\[[^\]]*+\]|'(?:[^']|'')*+'"
    r"|[^\s\"'`\[\](),/-]++|[(),]"
)
_CONSTRAINTS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the page at its root, its stored columns in order, and which of them is another name of the rowid."""

    name: str
    root: int
    columns: tuple[str, ...]
    rowid_column: int | None


def table_of(name: str, root: int, sql: str) -> Table:
    """Read a statement; what is no column definition is passed over."""
    columns: list[str] = []
    integers: list[str] = []
    keys: list[list[str]] = []
    for part in _parts(sql[:_SQL_CHARS]):
        words = [word.upper() for word, depth in part if depth == 1]
        if words[0] in _CONSTRAINTS:
            if "PRIMARY" in words[:3]:
                keys.append([_bare(word) for word, depth in part if depth == 2 and word != ","])
            continue
        column = _bare(part[0][0])
        if "AS" in words[1:] and "STORED" not in words:
            continue  # a generated column that is not stored takes no place in a row
        if words[1:2] == ["INTEGER"]:
            integers.append(column)
            if "PRIMARY" in words:
                keys.append([column])
        columns.append(column)
    alias = next((key[0] for key in keys if key and len(key) == 1 and key[0] in integers), None)
    return Table(name, root, tuple(columns), columns.index(alias) if alias is not None else None)


def _parts(sql: str) -> Iterator[list[tuple[str, int]]]:
    """Definitions between the outermost brackets: words with the depth of brackets they stand in."""
    depth = 0
    part: list[tuple[str, int]] = []
    for found in _TOKEN.finditer(sql):
        word = found.group()
        if word.startswith(("--", "/*")):
            continue
        if word == ")":
            depth -= 1
        if (depth == 0 and word == ")") or (depth == 1 and word == ","):
            if part:
                yield part
            part = []
            if depth == 0:
                return
        elif depth >= 1 and word not in "()":
            part.append((word, depth))
        if word == "(":
            depth += 1


def _bare(word: str) -> str:
    quote = word[:1]
    if quote in {'"', "`"}:
        return word[1:-1].replace(quote * 2, quote)
    return word[1:-1] if quote in {"[", "'"} else word
