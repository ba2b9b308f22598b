"""How programs write one thing: words of frames, metrics, settings, files, kernels, and keys that are its name.

A row of the files of `vocabulary/` has `row` (its name), `means` (what its words stand for), `words` (a search in the
text), `like` (texts that it fits), `unlike` (near misses, which no row of its meaning fits) and `source`. Rows of one
meaning are alternatives. Patterns are run by `re` and by polars: no look-around, no back-reference. A row of
`keys.jsonl` has `row`, `means`, `keys` (each compared whole) and `source`; rows of one meaning follow one another, the
best key first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from forensics.knowledge._rows import Row, rows_of

_ANY_CASE = "(?i)"


class Wording(Row, frozen=True):
    """One row; the fields are those of the table."""

    row: str
    means: str
    words: str
    like: tuple[str, ...]
    source: str
    unlike: tuple[str, ...] = ()


def wordings() -> tuple[Wording, ...]:
    """Every row, in the order of the files."""
    return rows_of("vocabulary", Wording)


def words_for(means: str) -> str:
    """Give the pattern of all that stands for one meaning; raises `KeyError` when no row has the meaning."""
    return _patterns()[means]


def stands_for(means: str, text: str) -> bool:
    """Whether a text holds words of a meaning; raises `KeyError` when no row has the meaning."""
    return _compiled(means).search(text) is not None


class Keys(Row, frozen=True):
    """Keys of one meaning; the fields are those of the table."""

    row: str
    means: str
    keys: tuple[str, ...]
    source: str


def every_key() -> tuple[Keys, ...]:
    """Every row of keys, in the order of the file."""
    return rows_of("keys.jsonl", Keys)


def keys_of(means: str) -> tuple[str, ...]:
    """Give the keys of one meaning, the best first; raises `KeyError` when no row has the meaning."""
    return _keys_by_meaning()[means]


@cache
def _keys_by_meaning() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for one in every_key():
        found[one.means] = (*found.get(one.means, ()), *one.keys)
    return found


@cache
def _patterns() -> Mapping[str, str]:
    every: dict[str, list[str]] = {}
    for one in wordings():
        words = f"(?i:{one.words.removeprefix(_ANY_CASE)})" if one.words.startswith(_ANY_CASE) else f"(?:{one.words})"
        every.setdefault(one.means, []).append(words)
    return {means: "|".join(words) for means, words in every.items()}


@cache
def _compiled(means: str) -> re.Pattern[str]:
    return re.compile(words_for(means))
