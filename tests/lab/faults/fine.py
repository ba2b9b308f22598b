"""Controls: nothing is wrong, whatever it looks like."""

from __future__ import annotations

from faults.row import HEALTHY, NONE, Fault, needs

ROWS = (
    Fault("fine", HEALTHY, NONE, needs=needs(), ranks=(1, 1, 2, 4), onset=False, ends="done"),
    Fault("fine-spikes", "healthy|suspect", f"{NONE}|learning", needs=needs("loss"), onset=False, ends="done", numbers={"factor": (3, 6)}),
    Fault("fine-warnings", HEALTHY, NONE, onset=False, ends="done"),
    Fault("fine-caught", HEALTHY, NONE, ranks=(1, 2), onset=False, ends="done"),
    Fault("fine-pauses", HEALTHY, NONE, needs=needs("evaluating"), onset=False, eval_every=(25, 50), ends="done", numbers={"seconds": (0.2, 0.4)}),
    Fault("fine-resumed", HEALTHY, NONE, needs=needs("restore"), onset=False, starts=2, ends="done"),
    Fault("fine-interval", HEALTHY, NONE, needs=needs("interval"), onset=False, ends="done"),
)  # fmt: skip
