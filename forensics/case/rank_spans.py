"""Ranks of a job in few words, `1,4-6`: written, with runs of neighbours joined and a long list cut, and read again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import cast

from forensics.patterns import lazily

#: No job of today has more ranks; a larger number was misread.
MOST_RANKS = 1_000_000
#: Of two ranks that differ neither is odd: of three, one is outvoted (Lyons and Vanderkulk, "The Use of Triple-Modular
#: Redundancy to Improve Computer Reliability", 1962).
FEWEST_THAT_VOTE = 3
_SHOWN_RANKS = 16
_SINGULAR = MappingProxyType({"are": "is", "have": "has", "do": "does"})
_SPAN = lazily(r"(\d{1,7})(?:-(\d{1,7}))?")


def ranks_text(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 1 and 2`, `ranks 0, 4-7 and 9`."""
    parts = spans(ranks)
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"rank {listed}" if len(ranks) == 1 else f"ranks {listed}"


def all_ranks(count: int) -> str:
    """`both ranks`, `all 8 ranks`."""
    return "both ranks" if count == 2 else f"all {count} ranks"


def ranks_do(ranks: Sequence[int], verb: str) -> str:
    """`rank 3 waits for others`, `ranks 1 and 2 wait for others`: `verb` begins with its plural form."""
    first, _, rest = verb.partition(" ")
    word = _SINGULAR.get(first, f"{first}s") if len(ranks) == 1 else first
    return " ".join(part for part in (ranks_text(ranks), word, rest) if part)


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


def listed(text: str | None) -> tuple[int, ...]:
    """Ranks of a JSON list or of `1, 4-6`, at most as many as a job may have; empty for anything else."""
    if not text:
        return ()
    if not text.lstrip().startswith("["):
        return tuple(_read(text))
    try:
        cells: object = json.loads(text)
    except ValueError:
        return ()
    return tuple(c for c in cast("list[object]", cells) if isinstance(c, int)) if isinstance(cells, list) else ()


def _read(text: str) -> Iterator[int]:
    left = MOST_RANKS
    for part in re.split(r"[,\s]+", text.strip()):
        if (span := _SPAN.fullmatch(part)) is None:
            continue
        first, last = int(span[1]), int(span[2] or span[1])
        yield from range(first, min(last, first + left) + 1)
        left -= last - first + 1
