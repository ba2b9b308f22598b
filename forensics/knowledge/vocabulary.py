"""How programs write one thing, from the files of `vocabulary/`: names of frames, metrics, settings, files, kernels.

A row has `row` (its name), `means` (what its words stand for), `words` (a search in the text), `like` (texts that it
fits), `unlike` (near misses, which no row of its meaning fits) and `source`. Rows of one meaning are alternatives.
Patterns are run by `re` and by polars: no look-around, no back-reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from forensics.knowledge._rows import frozen, rows_of

_ANY_CASE = "(?i)"


class Wording(Struct, frozen=True):
    """One row; the fields are those of the table."""

    row: str
    means: str
    words: str
    like: tuple[str, ...]
    source: str
    unlike: tuple[str, ...] = ()


@cache
def wordings() -> tuple[Wording, ...]:
    """Every row, in the order of the files."""
    return tuple(Wording(**frozen(row)) for row in rows_of("vocabulary"))


def words_for(means: str) -> str:
    """Give the pattern of all that stands for one meaning.

    Raises:
        KeyError: when no row has the meaning.
    """
    return _patterns()[means]


def stands_for(means: str, text: str) -> bool:
    """Whether a text holds words of a meaning.

    Raises:
        KeyError: when no row has the meaning.
    """
    return _compiled(means).search(text) is not None


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
