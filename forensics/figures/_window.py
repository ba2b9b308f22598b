"""Which bars are drawn where there are too many: those around the one that matters."""

from __future__ import annotations

MOST_BARS = 40
#: Name of what is put together; no category is called so.
REST = "the rest"


def window(at: int, count: int) -> tuple[int, int]:
    """Give the first place and the one behind the last of the bars around place `at`."""
    first = max(0, min(at - MOST_BARS // 2, count - MOST_BARS))
    return first, min(count, first + MOST_BARS)


def window_note(shown: int, count: int) -> str:
    """Say that not all steps are drawn; nothing where they are."""
    return f"{shown} of {count:,} steps, around the one that took longest" if shown < count else ""
