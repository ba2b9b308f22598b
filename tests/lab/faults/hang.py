"""Hangs: a rank that does not come to a collective."""

from __future__ import annotations

from faults.row import FAILED, Fault, needs

ROWS = (
    Fault("hang-skip", FAILED, "hang", ("skipped_collective", "never_entered", "collective_mismatch", "rank_conditional_work", "uneven_data"),
          ("rank", "collective", "barrier"), needs("skips"), ranks=(2, 3, 4), culprit=True, ends="unfinished"),
    Fault("hang-loader", FAILED, "hang", ("data_stall", "slow_storage_read", "host_stall_loop", "never_entered", "silent_stall"),
          ("loader", "data", "rank", "storage"), ranks=(2, 4), culprit=True, ends="unfinished"),
    Fault("hang-exit0", FAILED, "hang|crash", ("early_exit", "uneven_data"), ("rank", "exit", "data"), ranks=(2, 3), culprit=True, ends="unfinished"),
    Fault("hang-kill9", FAILED, "hang|crash|oom", ("silent_death_sigkill", "killed_by_sigkill", "host_out_of_memory"),
          ("kill", "memory", "dmesg", "host"), ranks=(2, 4), culprit=True, ends="unfinished"),
)  # fmt: skip
