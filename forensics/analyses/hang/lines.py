"""Lines of the attempt that is judged which fit a pattern, wherever a reader put their words: in text or message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.case.errors.kinds import attributes
from forensics.case.processes.attempts import judged_rows
from forensics.store.run import Run, derived

#: A pattern that fits more lines than this is looked at in its first ones.
_MOST = 5_000

#: So many events are searched one by one in less time than a query takes, and some forty patterns are looked for.
_FEW = 1_000


class _Lines(Struct, frozen=True):
    """The events of the attempt that is judged, in order; of few ones the text and attributes of each, too."""

    events: pl.DataFrame
    words: tuple[str, ...] | None


def matching(run: Run, pattern: re.Pattern[str], *needles: str) -> Iterator[tuple[Mapping[str, Any], re.Match[str]]]:
    """Give the events that a pattern fits, in order, each with its match; a traceback's message counts too.

    One of `needles` is in every line that the pattern fits.
    """
    for row in _said(_lines(run), needles).head(_MOST).iter_rows(named=True):
        hit = pattern.search(row["text"] or "") or pattern.search(attributes(row["attrs"]).get("message", ""))
        if hit is not None:
            yield row, hit


def _said(lines: _Lines, needles: tuple[str, ...]) -> pl.DataFrame:
    """The events whose text or message contains one of the needles."""
    if lines.words is not None:
        hits = [at for at, words in enumerate(lines.words) if any(needle in words for needle in needles)]
        return lines.events[hits] if hits else lines.events.clear()
    columns = (pl.col("text"), pl.col("attrs"))
    said = pl.any_horizontal(c.str.contains(needle, literal=True) for c in columns for needle in needles)
    return lines.events.filter(said)


@derived
def _lines(run: Run) -> _Lines:
    events = judged_rows(run, run.scan("events")).sort("source", "line", "seq").collect()
    few = events.height <= _FEW
    both = zip(events["text"].to_list(), events["attrs"].to_list(), strict=True) if few else ()
    return _Lines(events, tuple(f"{text or ''}\n{attrs or ''}" for text, attrs in both) if few else None)
