"""Stops: something outside of the program ended it, and something printed that.

A single process that dies of SIGTERM prints nothing; such a job is a row of `faults/cut.py`.
"""

from __future__ import annotations

from faults.row import FAILED, PLAIN, Fault

_ANEW = ("resume", "restart", "requeue")
_TERM = ("external_termination", "preempted")

ROWS = (
    Fault("stop-term", FAILED, "stopped", _TERM, _ANEW, ranks=(2,), ends="failed"),
    Fault("stop-handler", FAILED, "stopped", _TERM, _ANEW, ends="unfinished", trainers=PLAIN),
    Fault("stop-int", FAILED, "stopped", ("interrupted_by_user",), ("resume", "restart"), ranks=(1, 1, 2), ends="unfinished"),
    Fault("stop-limit", FAILED, "stopped", ("time_limit",), ("time", "limit", "resume"), ranks=(1, 1, 2), ends="failed"),
    Fault("stop-preempt", FAILED, "stopped", ("preempted",), _ANEW, ranks=(1, 1, 2), ends="failed"),
    Fault("stop-cancel", FAILED, "stopped", ("cancelled",), (*_ANEW, "cancel"), ends="failed"),
)  # fmt: skip
