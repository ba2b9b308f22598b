"""The one rank on which a number beside the loss was not finite when the loss of all ranks was lost.

A loss that is averaged is lost on all ranks in one step, while what each rank logs of its own batch (its largest value,
its norm) is not finite on the rank alone that read or computed it.
"""

from __future__ import annotations

import polars as pl

from forensics.case.processes.attempts import judged_rows
from forensics.case.rank_spans import FEWEST_THAT_VOTE
from forensics.store.run import Run

#: The step of the onset, and the one before: what goes into a step may be logged with the number of the last one.
_STEPS = 1
#: Values that are lost; one that is missing was not logged.
_LOST = ("nan", "+inf", "-inf")


def odd_rank(run: Run, step: int) -> int | None:
    """Give the rank that alone has a number that is not finite at a step, of a metric that three ranks log or more."""
    near = pl.col("step").is_between(step - _STEPS, step) & pl.col("rank").is_not_null()
    rows = judged_rows(run, run.scan("metrics").filter(near))
    bad = pl.col("rank").filter(pl.col("value_class").is_in(_LOST))
    told = (
        rows.group_by("name", "step")
        .agg(ranks=pl.col("rank").n_unique(), odd=bad.unique())
        .filter((pl.col("ranks") >= FEWEST_THAT_VOTE) & (pl.col("odd").list.len() == 1))
        .collect()
    )
    odd = {int(ranks[0]) for ranks in told["odd"].to_list()}
    return odd.pop() if len(odd) == 1 else None
