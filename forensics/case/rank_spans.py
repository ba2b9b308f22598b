"""Ranks of a job in few words: runs of neighbours are joined, and a long list is cut."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN_RANKS = 16


def ranks_text(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 1,2`, with runs as `4-7`."""
    listed = ",".join(spans(ranks))
    return f"rank {listed}" if len(ranks) == 1 else f"ranks {listed}"


def spans(ranks: Sequence[int]) -> list[str]:
    """Ranks in order with runs of three and more joined; at most 16 parts."""
    parts: list[str] = []
    ordered = sorted(set(ranks))
    i = 0
    while i < len(ordered):
        j = i
        while j + 1 < len(ordered) and ordered[j + 1] == ordered[j] + 1:
            j += 1
        parts.extend([f"{ordered[i]}-{ordered[j]}"] if j - i >= 2 else [str(r) for r in ordered[i : j + 1]])
        i = j + 1
    return parts if len(parts) <= _SHOWN_RANKS else [*parts[:_SHOWN_RANKS], "…"]
