"""The words before a number in a path that say what it counts, from `ranks.tsv`."""

from __future__ import annotations

from functools import cache

from forensics.io.tables import table_rows


@cache
def words_before(*what: str) -> frozenset[str]:
    """Give the words before a number that tells the process, or one that tells none, by the kinds of the table."""
    return frozenset(word for before, word, _ in table_rows("forensics.io", "ranks.tsv") if before in what)
