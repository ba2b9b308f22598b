"""Whether reinforcement learning has any advantage to learn from: rewards that differ within a group of answers."""

from __future__ import annotations

from forensics.analyses.rl.series import rl_series
from forensics.store.run import Run

#: The value of each quantity at which no answer of a group is better than another.
_NONE_AT = {"reward_std": 0.0, "frac_zero_std": 1.0}


def lacks_advantage(run: Run, share: float) -> bool:
    """Whether in at least `share` of the records all answers to each prompt got one reward."""
    return any(
        series.finite.height
        and (series.finite["value"] == _NONE_AT[series.quantity]).sum() >= share * series.finite.height
        for series in rl_series(run, *_NONE_AT)
    )
