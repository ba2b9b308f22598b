"""Resumes: a second process goes on from a checkpoint, and lost something on the way."""

from __future__ import annotations

from faults.row import FAILED, SOFT, Fault, needs

ROWS = (
    Fault("resume-schedule", SOFT, "learning", ("step_lost", "lr_jump", "restarted_from_scratch"), ("schedule", "step", "learning rate"),
          needs("restore", "schedule_step"), starts=2, ends="done"),
    Fault("resume-weights", SOFT, "learning", ("restarted_from_scratch",), ("checkpoint", "weights", "resume"), needs("restore"), starts=2, ends="done"),
    Fault("resume-loop", FAILED, "crash", ("crash_all_ranks", "bad_sample", "uncaught_exception"), ("data", "sample", "config", "code", "line"),
          needs("before", "restore"), starts=4, ends="failed"),
)  # fmt: skip
