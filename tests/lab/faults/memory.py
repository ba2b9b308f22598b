"""Memory: it grows until the limit, or one request is too large.

The rows of `mem-gpu-…` have no GPU: a counter stands for its memory, and its error is worded as torch words it.
"""

from __future__ import annotations

from faults.row import FAILED, NONE, SHOW_MEMORY, Fault, needs

_HOST = ("host_out_of_memory", "leak_per_step", "leak", "host_leak")
_GPU = ("gpu_out_of_memory", "leak_per_step", "leak")
_KEPT = ("memory", "leak", "list", "detach")

ROWS = (
    Fault("mem-slope", FAILED, "oom", _HOST, _KEPT, onset=False, ends="failed", numbers={"mb": (8, 14)}),
    Fault("mem-tensors", FAILED, "oom", _HOST, _KEPT, onset=False, ends="failed", numbers={"mb": (8, 14)}),
    Fault("mem-stairs", FAILED, "oom", (*_HOST, "leak_periodic", "oom_in_evaluation"), (*_KEPT, "eval"), needs("evaluating"), onset=False,
          eval_every=(10,), ends="failed", numbers={"mb": (95, 150)}),
    Fault("mem-batch", FAILED, "oom", ("one_large_request", "host_out_of_memory"), ("batch", "length", "memory"), needs("batch"), ends="failed"),
    # nothing says who killed it: memory is one guess among several
    Fault("mem-kill", "cannot_say|suspect", NONE, onset=False, ends="unfinished", numbers={"mb": (8, 14)}),
    Fault("mem-cgroup", FAILED, "oom", _HOST, ("memory", "host", "limit", "leak"), ranks=(1, 1, 2), onset=False, culprit=True, ends="unfinished",
          numbers={"mb": (4, 8)}),
    Fault("mem-slurm", FAILED, "oom", _HOST, ("memory", "host", "limit", "leak"), ranks=(1, 1, 2), onset=False, ends="unfinished",
          numbers={"mb": (4, 8)}),
    Fault("mem-gpu-slope", FAILED, "oom", _GPU, _KEPT, needs("before", "memory"), onset=False, ends="failed", trainers=SHOW_MEMORY,
          numbers={"gib": (0.75, 1.2)}),
    Fault("mem-gpu-stairs", FAILED, "oom", (*_GPU, "leak_periodic", "oom_in_evaluation"), (*_KEPT, "eval"), needs("evaluating", "memory"),
          onset=False, eval_every=(10,), ends="failed", trainers=SHOW_MEMORY, numbers={"gib": (8, 12)}),
    Fault("mem-gpu-batch", FAILED, "oom", ("gpu_out_of_memory", "one_large_request"), ("batch", "length", "sequence", "memory"),
          needs("batch", "memory"), ranks=(1, 1, 2), ends="failed", trainers=SHOW_MEMORY, numbers={"gib": (45, 70)}),
)  # fmt: skip
