"""Hangs: a rank that does not come to a collective."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from faults.row import FAILED, PLAIN, Facts, Fault, needs, of

_APART = ("collective_mismatch", "collective_mismatch_op", "collective_mismatch_size", "never_entered", "skipped_collective",
          "extra_collective", "rank_conditional_work")  # fmt: skip
_ORDER = ("rank", "collective", "order", "barrier")

_SILENT = ("host_stall", "host_stall_loop", "silent_stall", "never_entered", "rank_conditional_work")


def rank_0(_job: Any, _place: Path, facts: Facts, _rng: random.Random) -> dict[str, Any]:
    """The rank that works alone is the first, and the step is the one before which it was busy."""
    return {"culprits": [0]} if of(facts, "onset") else {"dropped": "it did not come to the work of rank 0"}


ROWS = (
    # the rank writes to a file system that does not answer, or evaluates for longer than the others wait
    Fault("hang-save", FAILED, "hang", (*_SILENT, "slow_storage_checkpoint"), ("rank", "checkpoint", "save", "storage"), needs("saving"),
          ranks=(2, 4), ends="unfinished", trainers=PLAIN, after=rank_0),
    Fault("hang-eval", FAILED, "hang", _SILENT, ("rank", "eval"), needs("evaluating"), ranks=(2, 4), eval_every=(20, 25), ends="unfinished",
          trainers=PLAIN, after=rank_0),
    Fault("hang-lock", FAILED, "hang", (*_SILENT, "data_stall"), ("rank", "lock", "thread", "stack"), ranks=(2, 4), culprit=True, ends="unfinished"),
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
