"""Resumes: a second process goes on from a checkpoint, and lost something on the way."""

from __future__ import annotations

import math
import statistics
from typing import Any

from faults.learn import finite
from faults.row import FAILED, SOFT, Facts, Fault, needs, of, rate_logged

#: A jump shows when the mean loss rises by so many standard errors; records on each side.
_ERRORS, _BEFORE, _AFTER = 4.0, 12, 8


def jumped(job: Any, facts: Facts, codes: list[int]) -> str:
    """What was lost shows when the losses after the resume lie above the last before it."""
    sides = [[float(one["loss"]) for one in of(facts, "shown") if one["process"] == number] for number in (0, 1)]
    old, new = sides[0][-_BEFORE:], sides[1][:_AFTER]
    if len(old) < _BEFORE or len(new) < _AFTER:
        return "too few records around the resume"
    rise, error = statistics.mean(new) - statistics.mean(old), statistics.stdev(old) / math.sqrt(_AFTER)
    return finite(job, facts, codes) or ("" if rise > _ERRORS * error else "the loss did not jump")


ROWS = (
    # at a high rate: this net shrugs off fresh moments at a low one
    Fault("resume-optimizer", SOFT, "learning", ("optimizer_lost", "loss_step_at_resume"), ("optimizer", "state", "checkpoint"), needs("restore", "lr"),
          ranks=(1, 1, 2), starts=2, ends="done", shown=jumped),
    Fault("resume-schedule", SOFT, "learning", ("warmup_again", "schedule_restarted", "step_lost", "lr_jump"),
          ("schedule", "step", "learning rate"), needs("restore", "schedule_step"), starts=2, ends="done", shown=rate_logged),
    # only this loop counts the samples that it read
    Fault("resume-data", SOFT, "learning", ("data_position_lost",), ("data", "sampler", "loader", "position"), needs("restore", "position"), starts=2,
          ends="done", trainers=("megatron",)),
    Fault("resume-counter", SOFT, "learning", ("step_lost", "steps_count_anew", "warmup_again", "replayed_steps"), ("step", "counter", "schedule"),
          needs("restore"), starts=2, onset=False, ends="done"),
    Fault("resume-rate", SOFT, "learning", ("lr_jump", "schedule_restarted", "lr_not_as_configured"), ("learning rate", "lr", "schedule"),
          needs("restore", "lr"), starts=2, ends="done", shown=rate_logged),
    Fault("resume-weights", SOFT, "learning", ("restarted_from_scratch",), ("checkpoint", "weights", "resume"), needs("restore"), ranks=(1, 1, 2),
          starts=2, ends="done", shown=jumped),
    Fault("resume-loop", FAILED, "crash", ("crash_all_ranks", "bad_sample", "uncaught_exception"), ("data", "sample", "config", "code", "line"),
          needs("before", "restore"), starts=3, ends="failed"),
)  # fmt: skip
