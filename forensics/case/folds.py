"""Whether the attempts of a run are its folds: parts that a loop trains one by one, of which none replaces another."""

from __future__ import annotations

import polars as pl

from forensics.case.joined.stores import counted
from forensics.case.series import metric_names
from forensics.knowledge.vocabulary import stands_for
from forensics.store.run import Run, derived


@derived
def has_folds(run: Run) -> bool:
    """Whether a number that is named as a fold is one in each attempt, and goes on by one with the next attempt."""
    raw = metric_names(run)["raw_name"].drop_nulls().unique()
    names = [name for name in raw if stands_for("counter_of_folds", name)]
    if not names:
        return False
    rows = counted(run, pl.col("raw_name") == names[0])
    told = rows.group_by("attempt").agg(pl.col("value").unique()).sort("attempt").collect()["value"].to_list()
    alone = [one[0] for one in told if len(one) == 1]
    return len(alone) == len(told) > 1 and alone == [alone[0] + at for at in range(len(alone))]
