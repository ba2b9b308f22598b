"""Patterns of Python's engine that are compiled when they are first asked for, not when their module is imported.

A pattern takes 0.1 to 5 ms to compile, and a run asks a few of all that are written down.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    import polars as pl

#: Polars keeps the last 32 patterns and compiles any other anew, in 0.2 to 2 ms; Python keeps them, and looks for one
#: in 0.5 µs a text. Of more texts than these the query is the quicker one.
FEW = 1_000


class _Later:
    """Acts as a pattern: what is asked of it is the compiled pattern's, and kept."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._given: tuple[Any, int] = (text, flags)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a pattern has
        held = getattr(re.compile(*self._given), name)
        setattr(self, name, held)
        return held


def lazily(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Give a pattern whose first use compiles it."""
    return cast("re.Pattern[AnyStr]", _Later(text, flags))


@cache
def compiled(text: str) -> re.Pattern[str]:
    """Give a pattern of a table, which is compiled once in a process, when something is asked of it."""
    return lazily(text)


def having(texts: pl.Series, pattern: str) -> list[str]:
    """Give the texts in which a pattern of a table is found; the pattern is one of both engines."""
    if texts.is_empty():
        return []
    if len(texts) > FEW:
        return texts.filter(texts.str.contains(pattern)).to_list()
    search = compiled(pattern).search
    return [text for text in texts.to_list() if text is not None and search(text)]
