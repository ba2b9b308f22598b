"""Ranks that the names of metrics tell: one process gathers the numbers of all and logs `step_time/rank3`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

import polars as pl

from forensics.dialects.names import canonical
from forensics.io.rank_words import words_before
from forensics.patterns import lazily
from forensics.store.packed import Packed, pack
from forensics.store.schema import TABLES

_TABLE = "metrics"
_LAST_WORD = lazily(r"[a-zA-Z]+$")
#: The word for a rank and its number between what parts words; `lossRank3` does without.
_NUMBER = (
    r"(?i)(?:^|(?P<left>[/_. -])|(?-i:(?<=[a-z\d])(?=R)))(?:{words})[_./ -]?(?P<rank>\d{{1,5}})(?:$|(?P<right>[/_. -]))"
)


def by_named_rank(table: Packed) -> Packed:
    """Give the rows with the rank that their names tell, under those names without it.

    Such names count without a gap, and whoever logs them does not say a rank himself, or one for all of them.
    """
    told = told_by_names(table.names["raw_name"].drop_nulls().unique().to_list())
    if not told:
        return table
    rows, raw = table.lazy().collect(), pl.col("raw_name")
    if rows.filter(raw.is_in(list(told)))["rank"].n_unique() > 1:
        return table
    means = {printed: canonical(name) for printed, (name, _) in told.items()}
    rank = raw.replace_strict({printed: rank for printed, (_, rank) in told.items()}, default=pl.col("rank"))
    name = raw.replace_strict({printed: one.canonical for printed, one in means.items()}, default=pl.col("name"))
    scale = raw.replace_strict({printed: one.scale for printed, one in means.items()}, default=1.0)
    bare = raw.replace_strict({printed: name for printed, (name, _) in told.items()}, default=raw)
    ranked = rows.with_columns(rank=rank, name=name, value=pl.col("value") * scale, raw_name=bare)
    packed = pack(_TABLE, ranked.select(pl.col(one).cast(kind) for one, kind in TABLES[_TABLE].items()))
    return packed if isinstance(packed, Packed) else table


def told_by_names(names: Iterable[str]) -> Mapping[str, tuple[str, int]]:
    """Give each printed name that tells a rank as the name without it, and the rank."""
    families: dict[str, dict[int, str]] = {}
    for raw in names:
        found = _ranked().search(raw)
        if found is not None and not _counts_other(raw[: found.start()]) and (name := _without(raw, found)):
            families.setdefault(name, {})[int(found["rank"])] = raw
    return {
        raw: (name, rank)
        for name, own in families.items()
        if len(own) > 1 and max(own) - min(own) == len(own) - 1
        for rank, raw in own.items()
    }


def _counts_other(left: str) -> bool:
    """Whether the word before that for a rank says that it is of a matrix, a node, or counted on a node."""
    last = _LAST_WORD.search(left)
    return last is not None and last[0].lower() in words_before("other", "local")


def _without(raw: str, found: re.Match[str]) -> str:
    """A name without the part that tells the rank, whose sides are joined by what parts it from one of them."""
    left, right = raw[: found.start()], raw[found.end() :]
    between = found["right"] or found["left"] or ""
    return f"{left}{between}{right}" if left and right else left + right


@cache
def _ranked() -> re.Pattern[str]:
    return re.compile(_NUMBER.format(words="|".join(sorted(words_before("rank", "process")))))
