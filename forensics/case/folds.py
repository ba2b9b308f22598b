"""Whether the attempts of a run are its folds: parts that a loop trains one by one, of which none replaces another."""

from __future__ import annotations

import polars as pl

from forensics.case.joined.stores import counted
from forensics.case.processes.attempts import attempts
from forensics.case.series import metric_names
from forensics.knowledge.vocabulary import stands_for
from forensics.store.run import Run, derived


@derived
def has_folds(run: Run) -> bool:
    """Whether a number that is named as a fold goes on by one, as often as there are attempts.

    It may be printed with each record, behind those of its fold, or in a header above them, where the attempt before
    still runs: so the numbers are compared in the order of their lines.
    """
    raw = metric_names(run)["raw_name"].drop_nulls().unique()
    names = [name for name in raw if stands_for("counter_of_folds", name)]
    if not names:
        return False
    rows = counted(run, pl.col("raw_name") == names[0]).sort("source", "seq").collect()
    told = rows["value"].rle().struct.field("value").to_list()
    return len(told) == len(attempts(run).every) > 1 and told == [told[0] + at for at in range(len(told))]
