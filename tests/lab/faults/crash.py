"""Crashes: an error of the program's own, on one rank or on all."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from faults.row import FAILED, PLAIN, Facts, Fault, needs, of

_RAISED = ("crash_all_ranks", "uncaught_exception")
_CODE = ("code", "line", "raise", "traceback")


def unlinked(_job: Any, place: Path, _facts: Facts, _rng: random.Random) -> dict[str, Any]:
    """What could not be written is an empty file, as a full disk leaves it."""
    for link in (path for path in place.rglob("*") if path.is_symlink()):
        link.unlink()
        link.write_bytes(b"")
    return {}


def one_before(_job: Any, _place: Path, facts: Facts, _rng: random.Random) -> dict[str, Any]:
    """The checkpoint that could not be loaded is not one to go on from; the one before it is."""
    saved = sorted({one["saved"] for one in of(facts, "saved")})
    return {"checkpoint": saved[-2] if len(saved) > 1 else None}


def none_fits(_job: Any, _place: Path, _facts: Facts, _rng: random.Random) -> dict[str, Any]:
    """No checkpoint of a model of another shape is one to go on from."""
    return {"checkpoint": None}


ROWS = (
    Fault("crash-all", FAILED, "crash", (*_RAISED, "bad_config"), ("key", "config", "code", "line"), ranks=(1, 1, 2), ends="failed"),
    Fault("crash-bare", FAILED, "crash", _RAISED, _CODE, ranks=(1, 1, 2), ends="failed"),
    Fault("crash-lines", FAILED, "crash", (*_RAISED, "bad_sample"), (*_CODE, "data", "sample", "shard"), ranks=(1, 1, 2), ends="failed"),
    Fault("crash-chain", FAILED, "crash", (*_RAISED, "file_missing"), (*_CODE, "file", "path", "data"), ranks=(1, 1, 2), ends="failed"),
    Fault("crash-assert", FAILED, "crash", _RAISED, (*_CODE, "assert"), ranks=(1, 1, 2), ends="failed"),
    Fault("crash-one", FAILED, "crash|hang", ("exception_one_rank", "uncaught_exception"), ("rank", "code", "line"), ranks=(2, 4), culprit=True,
          ends="failed"),
    Fault("crash-shape", FAILED, "crash", (*_RAISED, "shape_mismatch"), (*_CODE, "shape", "size"), needs("hidden"), ranks=(1, 1, 2), ends="failed"),
    Fault("crash-index", FAILED, "crash", ("index_out_of_range", "tokenizer_mismatch", *_RAISED), (*_CODE, "index", "vocab", "id", "embedding"),
          needs("batch"), ends="failed"),
    Fault("crash-label", FAILED, "crash", ("label_out_of_range", *_RAISED), (*_CODE, "label", "class", "ignore"), needs("batch"), ends="failed"),
    Fault("crash-worker", FAILED, "crash|oom", ("loader_worker_died", "killed_by_sigkill", "host_out_of_memory", "worker_died"),
          ("worker", "memory", "loader"), needs("batch", "before"), ends="failed", trainers=PLAIN),
    Fault("crash-disk", FAILED, "crash", ("disk_full",), ("disk", "space"), needs("saving"), ranks=(1, 2), ends="failed",
          trainers=PLAIN, after=unlinked),
    # torch's own writer, which does not say why it could not write
    Fault("crash-writer", FAILED, "crash", ("checkpoint_write_failed", "disk_full"), ("disk", "space", "checkpoint", "writ"), needs("saving"),
          ranks=(1, 2), ends="failed", trainers=PLAIN, after=unlinked),
    Fault("crash-import", FAILED, "crash", ("module_missing",), ("install", "module", "environment"), steps=(160, 240), begins=(0.65, 0.8),
          ends="failed"),
    # the launcher tells of the signal, or the interpreter's own handler does; without both nothing is printed
    Fault("crash-segv", FAILED, "crash|hang", ("segmentation_fault", "silent_death_segv"), ("segmentation", "core", "faulthandler", "gdb", "native"),
          ranks=(2, 4), culprit=True, ends="failed"),
    Fault("crash-handler", FAILED, "crash", ("segmentation_fault", "silent_death_segv", "interpreter_fatal"),
          ("segmentation", "core", "native", "gdb", "stack", "extension"), ranks=(1, 1, 2), ends="failed"),
    Fault("crash-abort", FAILED, "crash|hang", ("aborted", "native_exception", "silent_death_signal", "native_assertion"),
          ("native", "core", "abort", "assert", "gdb"), ranks=(2,), culprit=True, ends="failed"),
    Fault("crash-missing", FAILED, "crash", ("file_missing", "no_checkpoint_found", "uncaught_exception"), ("checkpoint", "file", "path"),
          needs("restore", "resuming"), onset=False, starts=2, ends="failed", after=one_before),
    Fault("crash-torn", FAILED, "crash", ("checkpoint_damaged", "uncaught_exception"), ("checkpoint", "damage", "earlier", "corrupt", "truncat"),
          needs("restore", "resuming"), onset=False, starts=2, ends="failed", after=one_before),
    Fault("crash-state", FAILED, "crash", ("state_mismatch", "shape_mismatch"), ("checkpoint", "model", "size", "shape", "vocab"),
          needs("restore", "resuming"), onset=False, starts=2, ends="failed", after=none_fits),
    Fault("crash-quota", FAILED, "crash", ("disk_quota", "disk_full"), ("quota", "space", "disk"), needs("saving"), ends="failed", trainers=PLAIN),
    Fault("crash-files", FAILED, "crash", ("too_many_open_files",), ("file", "open", "ulimit"), onset=False, ends="failed"),
    Fault("crash-decode", FAILED, "crash", ("data_unreadable", "uncaught_exception"), ("encod", "data", "file", "utf"), ranks=(1, 1, 2), ends="failed"),
    Fault("crash-inplace", FAILED, "crash", ("changed_in_place",), ("in place", "in-place", "inplace", "clone"), needs("hidden"), ends="failed"),
    Fault("crash-twice", FAILED, "crash", ("graph_used_twice",), ("graph", "detach", "retain", "loss"), needs("loss"), ends="failed"),
    Fault("crash-detached", FAILED, "crash", ("no_gradient_path",), ("grad", "detach", "no_grad", "requires"), needs("loss"), ends="failed"),
    Fault("crash-dtype", FAILED, "crash", ("dtype_mismatch",), ("dtype", "type", "cast", "autocast", "precision"), needs("hidden"), ends="failed"),
    Fault("crash-port", FAILED, "crash|hang", ("port_in_use",), ("port", "address", "process"), needs("joining"), ranks=(1, 2), onset=False,
          early=True, ends="failed"),
    Fault("crash-config", FAILED, "crash", (*_RAISED, "bad_config", "bad_arguments", "program_did_not_start"), ("key", "config", "code", "argument"),
          needs("joining"), onset=False, early=True, ends="failed"),
)  # fmt: skip
