"""Numbers that are named as folds, and the order in which a run prints them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import polars as pl

from forensics.case.joined.stores import counted
from forensics.case.series import metric_names
from forensics.knowledge.vocabulary import stands_for
from forensics.store.run import Run, derived

#: The numbers of one kind of fold, each with the place of its line, in the order of places.
Counted = Sequence[tuple[int, float]]


@derived
def fold_counters(run: Run) -> Mapping[tuple[str, str], Counted]:
    """Give what is counted as folds, by source and name in small letters: a header and a result are of one fold."""
    raw = metric_names(run)["raw_name"].drop_nulls().unique()
    names = [name for name in raw if stands_for("counter_of_folds", name)]
    if not names:
        return {}
    rows = (
        counted(run, pl.col("raw_name").is_in(names)).sort("source", "seq").select("source", "raw_name", "seq", "value")
    )
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for source, name, seq, value in rows.collect().iter_rows():
        found.setdefault((str(source), str(name).lower()), []).append((seq, value))
    return found


def is_next_fold(run: Run, source: str, before: int, after: int) -> bool:
    """Whether a fold is counted on between two places of a source."""
    return any(_at(told, before) != _at(told, after) for (own, _), told in fold_counters(run).items() if own == source)


def _at(told: Counted, seq: int) -> float | None:
    place = bisect_right(told, seq, key=lambda one: one[0])
    return told[place - 1][1] if place else None
