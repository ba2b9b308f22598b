"""Lines of the events table that fit a pattern, wherever a reader put their words: in the text or in the message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import polars as pl

from forensics.store.run import Run

#: A pattern that fits more lines than this is looked at in its first ones.
_MOST = 5_000


def matching(run: Run, pattern: re.Pattern[str], *needles: str) -> Iterator[tuple[Mapping[str, Any], re.Match[str]]]:
    """Give the events that a pattern fits, in order, each with its match; a traceback's message counts too.

    One of `needles` is in every line that the pattern fits.
    """
    columns = (pl.col("text"), pl.col("attrs"))
    said = pl.any_horizontal(c.str.contains(needle, literal=True) for c in columns for needle in needles)
    for row in run.derived(_lines).filter(said).head(_MOST).iter_rows(named=True):
        hit = pattern.search(row["text"] or "") or pattern.search(_message(row["attrs"]))
        if hit is not None:
            yield row, hit


def _message(attrs: str | None) -> str:
    try:
        found: Any = json.loads(attrs or "{}")
    except ValueError:
        return ""
    return str(cast("dict[str, object]", found).get("message", "")) if isinstance(found, dict) else ""


def _lines(run: Run) -> pl.DataFrame:
    return run.scan("events").sort("source", "line", "seq").collect()
