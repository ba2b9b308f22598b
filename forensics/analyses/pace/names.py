"""The metric names of speed, each with its form and unit: read from `names.tsv`."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from msgspec import Struct

from forensics.dialects.names import meanings
from forensics.io.tables import table_rows
from forensics.knowledge.vocabulary import stands_for
from forensics.patterns import lazily

#: `anew`: a time of each step, or a clock since the start, where its numbers show it (`dialects.names`); `since`: a
#: clock since the start, or no time at all.
Form = Literal["clock", "time", "anew", "since", "rate", "mean-time", "mean-rate", "wall", "parts"]
_WORDS = lazily(r"[\s\-]+")


class PaceName(Struct, frozen=True):
    """A measure of speed: its form, its unit of work, the factor to seconds, and its rank among others (0 first)."""

    form: Form
    unit: str
    scale: float
    order: int


@cache
def _table() -> tuple[tuple[re.Pattern[str], PaceName], ...]:
    return tuple(
        (re.compile(pattern), PaceName(form, unit, float(scale), order))  # pyright: ignore[reportArgumentType] - the file's word
        for order, (pattern, form, unit, scale, _) in enumerate(table_rows("forensics.analyses.pace", "names.tsv"))
    )


@cache
def pace_name(name: str) -> PaceName | None:
    """Give the measure of a metric name; None for names that tell no training speed."""
    lower = _WORDS.sub("_", name.lower().strip())
    if stands_for("not_of_training", lower):
        return None
    parts = (lower, lower.rsplit("/", 1)[-1], lower.rsplit(".", 1)[-1], "/".join(lower.split("/")[1:]))
    return next((found for part in parts if part for pattern, found in _table() if pattern.fullmatch(part)), None)


def pace_of(name: str | None, raw_name: str | None) -> PaceName | None:
    """Give the measure of a metric by its canonical name, or by the printed one where that has no other meaning."""
    found = pace_name(name) if name else None
    if found is not None or not raw_name or (name != raw_name and name in meanings()):
        return found
    return pace_name(raw_name)
