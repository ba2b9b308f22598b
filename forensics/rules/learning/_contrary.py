"""What contradicts a claim about the training loss: a run that is no supervised one, an evaluation that got better."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import polars as pl

from forensics.signals.loss_curve import Curve
from forensics.signals.metric_names import metric_names
from forensics.store.run import Run

_REWARDS = r"(?i)reward|(?:^|[/_])kl(?:$|[/_])|advantage|policy"


def reinforced(run: Run) -> bool:
    """Whether the run logs rewards: then its loss need not fall."""
    return bool(metric_names(run)["name"].str.contains(_REWARDS).any())


def improved(curve: Curve, onset: int, evals: tuple[Curve, ...]) -> bool:
    """Whether an evaluation loss was no worse after the onset than at its last value before it."""
    step = curve.step(onset)
    if step is None:
        return False
    for other in evals:
        at, values = _steps(other), other.values
        known = ~np.isnan(at)
        before, after = values[known & (at < step)], values[known & (at >= step)]
        if len(before) and len(after) and float(after.min()) <= float(before[-1]):
            return True
    return False


@lru_cache(maxsize=64)
def _steps(curve: Curve) -> np.ndarray:
    return curve.rows["at"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
