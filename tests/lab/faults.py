"""The faults that the lab injects, one row each: what they do is in `job/hooks.py`, what is right to say of them is here.

`shape`, `causes` and `outcome` are what a right answer may say: several where evidence cannot tell them apart.
`says` are words of which the first action of a good answer holds at least one.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its truth, and where and when it can be injected."""

    name: str
    outcome: str
    shape: str
    causes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    ranks: tuple[int, ...] = (1,)
    steps: tuple[int, int] = (90, 240)
    begins: tuple[float, float] = (0.35, 0.7)
    onset: bool = True
    culprit: bool = False
    in_libraries: bool = False
    numbers: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])


_FAILED = "failed"
_SOFT = "failed|suspect"
_GROUP = (2, 2, 4)

FAULTS = (
    # NaN
    Fault("nan-lr", _FAILED, "nan|learning", ("optimization_blowup", "learning_rate_or_clip", "large_gradnorm", "lr_jump"), ("learning rate", "lr", "clip"),
          ranks=(1, 1, 2), in_libraries=True, numbers={"factor": (3e4, 3e6)}),
    Fault("nan-sample", _FAILED, "nan", ("data_or_numerics", "bad_sample"), ("data", "batch", "sample"), ranks=(1, 2), in_libraries=True),
    Fault("nan-log0", _FAILED, "nan", ("data_or_numerics", "loss_nonfinite"), ("log", "eps", "numer", "data", "batch")),
    Fault("nan-one-rank", _FAILED, "nan", ("data_or_numerics", "bad_sample", "ranks_differ"), ("data", "batch", "rank"), ranks=(2, 4)),
    Fault("nan-scale", _FAILED, "nan", ("loss_scale_collapse",), ("scale", "bf16", "fp16"), steps=(120, 200)),
    Fault("nan-hidden", _FAILED, "nan", ("filtered_by_writer", "loss_hidden_by_filter", "gradient_nonfinite", "data_or_numerics", "bad_sample"), ("nan", "filter", "grad"), onset=True),
    # memory
    Fault("mem-slope", _FAILED, "oom", ("leak_per_step", "leak", "host_leak", "host_out_of_memory"), ("memory", "leak", "list", "detach"),
          onset=False, numbers={"mb": (6, 14)}),
    Fault("mem-batch", _FAILED, "oom", ("one_large_request", "host_out_of_memory"), ("batch", "length", "memory"), onset=True),
    # hang
    Fault("hang-skip", _FAILED, "hang", ("skipped_collective", "never_entered", "collective_mismatch", "rank_conditional_work", "uneven_data"),
          ("rank", "collective", "barrier"), ranks=(2, 3, 4), onset=True, culprit=True),
    Fault("hang-loader", _FAILED, "hang", ("data_stall", "slow_storage_read", "host_stall_loop", "never_entered", "silent_stall"),
          ("loader", "data", "rank", "storage"), ranks=(2, 4), culprit=True),
    Fault("hang-exit0", _FAILED, "hang|crash", ("early_exit", "uneven_data"), ("rank", "exit", "data"), ranks=(2, 3), culprit=True),
    Fault("hang-kill9", _FAILED, "hang|crash|oom", ("silent_death_sigkill", "killed_by_sigkill", "host_out_of_memory"), ("kill", "memory", "dmesg", "host"),
          ranks=(2, 4), culprit=True),
    # slowdown
    Fault("slow-loader", _SOFT, "slowdown", ("slow_steps", "dataloader"), ("data", "loader", "input", "profile"),
          ranks=(1, 1, 2), in_libraries=True, numbers={"times": (2.2, 4.0)}),
    Fault("slow-pauses", _SOFT, "slowdown", ("stalls", "periodic_pauses"), ("pause", "stall", "checkpoint", "loader", "garbage"),
          numbers={"every": (7, 13), "seconds": (0.25, 0.5)}),
    Fault("slow-ramp", _SOFT, "slowdown", ("slow_ramp", "slow_steps"), ("grow", "cache", "list", "profile", "data"), numbers={"times": (2.5, 4.0)}),
    Fault("slow-straggler", _SOFT, "slowdown", ("straggler",), ("rank", "host", "device"), ranks=(2, 4), culprit=True, numbers={"times": (2.5, 4.0)}),
    Fault("slow-saves", _SOFT, "slowdown", ("periodic_pauses", "stalls"), ("checkpoint", "save"), onset=False, numbers={"seconds": (0.8, 1.4)}),
    # learning
    Fault("learn-lr0", _SOFT, "learning", ("lr_zero", "frozen_loss"), ("learning rate", "lr", "schedule"), in_libraries=True, begins=(0.25, 0.45)),
    Fault("learn-lr30", _SOFT, "learning|nan", ("not_learning", "uniform_loss", "diverged", "frozen_loss", "never_regained"), ("learning rate", "lr"), onset=False, in_libraries=True),
    Fault("learn-masked", _SOFT, "learning", ("no_gradients", "frozen_loss", "loss_zero"), ("label", "mask", "gradient"), onset=False, in_libraries=True),
    Fault("learn-shuffled", _SOFT, "learning", ("not_learning", "uniform_loss", "plateau"), ("label", "data", "loss"), onset=False),
    Fault("learn-spike", _SOFT, "learning", ("diverged", "level_shift", "loss_spike", "lr_jump", "never_regained"), ("learning rate", "clip", "checkpoint", "data"), numbers={"factor": (40, 400)}),
    # crash
    Fault("crash-all", _FAILED, "crash", ("crash_all_ranks", "bad_config"), ("key", "config", "code", "line"), ranks=(1, 1, 2), in_libraries=True),
    Fault("crash-bare", _FAILED, "crash", ("crash_all_ranks",), ("code", "line", "raise"), ranks=(1,)),
    Fault("crash-one", _FAILED, "crash|hang", ("exception_one_rank",), ("rank", "code", "line"), ranks=(2, 4), culprit=True),
    Fault("crash-disk", _FAILED, "crash", ("disk_full",), ("disk", "space"), ranks=(1, 2), culprit=False),
    Fault("crash-import", _FAILED, "crash", ("module_missing",), ("install", "module", "environment"), ranks=(1,)),
    Fault("crash-segv", _FAILED, "crash", ("segmentation_fault", "silent_death_segv"), ("segmentation", "core", "faulthandler", "gdb"), ranks=(1, 2), culprit=False),
    # stop
    Fault("stop-term", _FAILED, "stopped", ("external_termination", "preempted"), ("resume", "restart", "requeue"), ranks=(1, 2), in_libraries=True),
    Fault("stop-int", _FAILED, "stopped", ("interrupted_by_user",), ("resume", "restart"), in_libraries=True),
    Fault("stop-limit", _FAILED, "stopped", ("time_limit",), ("time", "limit", "resume"), ranks=(1,)),
    # a second process goes on from a checkpoint, and lost something on the way
    Fault("resume-schedule", _SOFT, "learning", ("step_lost", "lr_jump", "restarted_from_scratch"), ("schedule", "step", "learning rate"), onset=True),
    Fault("resume-weights", _SOFT, "learning", ("restarted_from_scratch",), ("checkpoint", "weights", "resume"), onset=True),
    Fault("resume-loop", _FAILED, "crash", ("crash_all_ranks", "bad_sample"), ("data", "sample", "config", "code", "line"), onset=True),
    # nothing decides: a log that ends in the middle
    Fault("cut", "cannot_say|suspect", "none", (), (), onset=False),
)  # fmt: skip

_NONE = "none"
CONTROLS = (
    Fault("fine", "healthy", _NONE, ranks=(1, 1, 2, 4), onset=False, in_libraries=True),
    Fault("fine-spikes", "healthy|suspect", f"{_NONE}|learning", onset=False, numbers={"factor": (3, 6)}),
    Fault("fine-warnings", "healthy", _NONE, onset=False, in_libraries=True),
    Fault("fine-caught", "healthy", _NONE, ranks=(1, 2), onset=False),
    Fault("fine-pauses", "healthy", _NONE, onset=False, numbers={"seconds": (0.2, 0.4)}),
    Fault("fine-resumed", "healthy", _NONE, onset=False),
    Fault("fine-interval", "healthy", _NONE, onset=False),
)
BY_NAME = {one.name: one for one in (*FAULTS, *CONTROLS)}
