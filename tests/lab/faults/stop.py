"""Stops: something outside of the program ended it."""

from __future__ import annotations

from faults.row import FAILED, Fault

ROWS = (
    Fault("stop-term", FAILED, "stopped", ("external_termination", "preempted"), ("resume", "restart", "requeue"), ranks=(1, 2), ends="failed"),
    Fault("stop-int", FAILED, "stopped", ("interrupted_by_user",), ("resume", "restart"), ends="failed"),
    Fault("stop-limit", FAILED, "stopped", ("time_limit",), ("time", "limit", "resume"), ends="failed"),
)  # fmt: skip
