"""Names under which writers print the step, the epoch and the time of a row, best first."""

from __future__ import annotations

from collections.abc import Sequence

STEPS = (
    "step",
    "global_step",
    "trainer/global_step",
    "train/global_step",
    "current_steps",
    "current_step",
    "iteration",
    "iter",
    "num_updates",
    "_step",
    "steps",
    "it",
    "total_steps_done",
    "time/total_timesteps",
    "training_iteration",
    "total_timesteps",
    "misc/total_timesteps",
    "timesteps_total",
    "num_env_steps_sampled",
    "timestepssofar",
    "totalenvinteracts",
    "nupdates",
    "misc/nupdates",
    "update",
    "updates",
    "frames",
    "episode",
    "episodes",
)
EPOCHS = ("epoch", "epochs")
TIMES = ("_timestamp", "timestamp", "wall_time", "time_s", "created_at", "unix_time")
#: printed with every row, but no metric
CONSTANTS = ("total_steps", "max_steps", "percentage", "_runtime", "rank", "mode")


def first_of(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Index of the best of the wanted names, case-blind; None when there is none."""
    lowered = [name.lower() for name in names]
    return next((lowered.index(name) for name in wanted if name in lowered), None)
