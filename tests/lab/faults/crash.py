"""Crashes: an error of the program's own, on one rank or on all."""

from __future__ import annotations

from faults.row import FAILED, Fault

ROWS = (
    Fault("crash-all", FAILED, "crash", ("crash_all_ranks", "bad_config", "uncaught_exception"), ("key", "config", "code", "line"),
          ranks=(1, 1, 2), ends="failed"),
    Fault("crash-bare", FAILED, "crash", ("crash_all_ranks", "uncaught_exception"), ("code", "line", "raise"), ends="failed"),
    Fault("crash-one", FAILED, "crash|hang", ("exception_one_rank", "uncaught_exception"), ("rank", "code", "line"), ranks=(2, 4), culprit=True,
          ends="failed"),
    Fault("crash-disk", FAILED, "crash", ("disk_full",), ("disk", "space"), ranks=(1, 2), ends="failed"),
    Fault("crash-import", FAILED, "crash", ("module_missing",), ("install", "module", "environment"), ends="failed"),
    Fault("crash-segv", FAILED, "crash", ("segmentation_fault", "silent_death_segv"), ("segmentation", "core", "faulthandler", "gdb"),
          ranks=(1, 2), ends="failed"),
)  # fmt: skip
