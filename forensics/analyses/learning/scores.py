"""Scores beside the loss, such as an accuracy or an IoU, that never leave the level at which they began."""

from __future__ import annotations

import numpy as np
import polars as pl

from forensics.case.series import metric_rows
from forensics.knowledge.vocabulary import words_for
from forensics.stats.spread import Floats
from forensics.store.run import Run

#: A share of right answers rises by more than this share of itself where anything is learned.
_RISE = 0.1
#: Above this share of its scale a score is no chance.
_CHANCE = 0.5


def has_idle_score(run: Run, fewest: int) -> bool:
    """Whether every score of the run that has so many records stayed at its first level, and there is one."""
    rows = metric_rows(run, pl.col("raw_name").str.contains(words_for("score"))).filter(
        pl.col("value_class") == "finite"
    )
    own = rows.sort("source", "seq").group_by("source", "raw_name", "rank", maintain_order=True).agg("value").collect()
    series = [np.asarray(values, dtype=np.float64) for values in own["value"].to_list() if len(values) >= fewest]
    return bool(series) and all(map(_is_idle, series))


def _is_idle(values: Floats) -> bool:
    third = max(1, len(values) // 3)
    first, last = float(np.median(values[:third])), float(np.median(values[-third:]))
    scale = 100.0 if values.max() > 1 else 1.0
    return 0 <= last <= first * (1 + _RISE) and first < _CHANCE * scale
