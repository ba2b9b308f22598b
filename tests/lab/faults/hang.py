"""Hangs: a rank that does not come to a collective."""

from __future__ import annotations

from faults.row import FAILED, Fault, needs

_APART = ("collective_mismatch", "collective_mismatch_op", "collective_mismatch_size", "never_entered", "skipped_collective",
          "extra_collective", "rank_conditional_work")  # fmt: skip
_ORDER = ("rank", "collective", "order", "barrier")

ROWS = (
    # the rank is one step ahead from the onset on, and nobody notices before the last barrier
    Fault("hang-skip", FAILED, "hang", (*_APART, "uneven_data", "shutdown_hang"), ("rank", "collective", "barrier"), needs("skips"),
          ranks=(2, 3, 4), onset=False, culprit=True, ends="unfinished"),
    # two ranks that call different operations are as odd to each other
    Fault("hang-broadcast", FAILED, "hang", _APART, _ORDER, needs("skips"), ranks=(3, 4), culprit=True, ends="unfinished"),
    Fault("hang-barrier", FAILED, "hang", _APART, _ORDER, needs("skips"), ranks=(3, 4), culprit=True, ends="unfinished"),
    Fault("hang-shape", FAILED, "hang|crash", (*_APART, "native_exception"), (*_ORDER, "shape", "size"), needs("skips"), ranks=(2, 3, 4),
          ends="unfinished"),
    Fault("hang-groups", FAILED, "hang", ("pg_order_deadlock", *_APART), (*_ORDER, "group"), ranks=(2, 3, 4), ends="unfinished"),
    Fault("hang-loader", FAILED, "hang", ("data_stall", "slow_storage_read", "host_stall", "host_stall_loop", "never_entered", "silent_stall"),
          ("loader", "data", "rank", "storage"), ranks=(2, 4), culprit=True, ends="unfinished"),
    Fault("hang-exit0", FAILED, "hang|crash", ("early_exit", "uneven_data"), ("rank", "exit", "data"), ranks=(2, 3), culprit=True, ends="unfinished"),
    Fault("hang-exit1", FAILED, "hang|crash", ("exit_nonzero", "exception_one_rank", "child_failed"), ("rank", "exit", "output", "log"),
          ranks=(2, 3), culprit=True, ends="unfinished"),
    Fault("hang-kill9", FAILED, "hang|crash|oom", ("silent_death_sigkill", "killed_by_sigkill", "host_out_of_memory"),
          ("kill", "memory", "dmesg", "host"), ranks=(2, 4), culprit=True, ends="unfinished"),
    Fault("hang-uneven", FAILED, "hang", ("uneven_data", "early_exit", "shutdown_hang", *_APART), ("data", "rank", "join", "batches", "barrier"),
          ranks=(2, 3), culprit=True, ends="unfinished"),
    Fault("hang-start", FAILED, "hang", ("init_hang", "rendezvous_timeout", "store_timeout", "never_entered"), ("rank", "join", "start", "init"),
          needs("joining"), ranks=(2, 4), onset=False, culprit=True, early=True, ends="unfinished"),
    Fault("hang-end", FAILED, "hang", ("shutdown_hang", "never_entered", "host_stall"), ("rank", "exit", "barrier", "shut", "thread"),
          needs("leaving"), ranks=(2, 4), onset=False, culprit=True, ends="unfinished"),
)  # fmt: skip
