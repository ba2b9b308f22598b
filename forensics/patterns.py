"""Patterns of Python's engine that are compiled when they are first asked for, not when their module is imported.

A pattern takes 0.1 to 5 ms to compile, and a run asks a few of all that are written down.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Later:
    """Stands for a pattern: what is asked of it is the compiled pattern's, and kept."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._given: tuple[Any, int] = (text, flags)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a pattern has
        held = getattr(re.compile(*self._given), name)
        setattr(self, name, held)
        return held


def lazily(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Give a pattern whose first use compiles it."""
    return cast("re.Pattern[AnyStr]", _Later(text, flags))
