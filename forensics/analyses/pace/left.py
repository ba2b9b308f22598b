"""The time until the last step as a clock: the remaining time over the remaining steps."""

from __future__ import annotations

import numpy as np
import polars as pl

from forensics.io.columns import as_column

#: What is printed in seconds is right to one in a hundred, and the last steps are few.
_LEAST_S, _LEAST_SHARE = 100.0, 0.05
#: A time to come rises where steps become slower, once or twice; one that is of each epoch rises with each of them.
_MOST_RISES, _RISE = 2, 1.2
#: It is over before the last step where it is that of an epoch: then next to nothing is left for all that follow. The
#: first records may print none.
_OVER, _FIRST = 0.2, 2


def of_each_step(rows: pl.DataFrame, plan: int) -> tuple[pl.DataFrame, float] | None:
    """Give rows (`at`, `value` in seconds) with the seconds of one step, and the unit of these; None where none tell.

    `plan` is the last step.
    """
    left, value = plan - rows["at"].to_numpy(), rows["value"].to_numpy()
    if len(left) <= _FIRST or (left < 0).any():
        return None
    early = left >= _LEAST_SHARE * plan
    each = (value[early] / left[early])[_FIRST:]
    kept = early & (value >= _LEAST_S)
    rises = int((value[kept][1:] > _RISE * value[kept][:-1]).sum())
    if not len(each) or rises > _MOST_RISES or (each < _OVER * np.maximum.accumulate(each)).any():
        return None
    own = rows.filter(as_column(kept))
    steps = left[kept]
    return own.with_columns(value=as_column(value[kept] / steps)), float(1 / np.median(steps)) if len(steps) else 0.0
