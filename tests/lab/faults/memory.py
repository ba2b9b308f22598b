"""Memory: it grows until the limit, or one request is too large."""

from __future__ import annotations

from faults.row import FAILED, Fault, needs

ROWS = (
    Fault("mem-slope", FAILED, "oom", ("leak_per_step", "leak", "host_leak", "host_out_of_memory"), ("memory", "leak", "list", "detach"),
          onset=False, ends="failed", numbers={"mb": (6, 14)}),
    Fault("mem-batch", FAILED, "oom", ("one_large_request", "host_out_of_memory"), ("batch", "length", "memory"), needs("batch"), ends="failed"),
)  # fmt: skip
