"""Memory that runs out: on the host under a limit of the address space, on a GPU by a counter in its place."""

import os
import resource
import signal
import sys
import time
from pathlib import Path

import torch
from facts import AT, HERE, KIND, NUMBERS, note

_ROOM_BYTES = 600 << 20
_LIMITED = frozenset(("mem-slope", "mem-tensors", "mem-stairs", "mem-batch"))
_DEVICE_GIB, _MODEL_GIB, _OTHER_GIB = 79.15, 20.0, 0.62
kept, gpu = [], {"held": _MODEL_GIB}


def _held_pages():
    return int(Path("/proc/self/statm").read_text().split()[0])


def start():
    if KIND in _LIMITED:
        limit = _held_pages() * 4096 + _ROOM_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _keep(megabytes):
    kept.append(bytearray(int(megabytes * 1e6)))
    kept[-1][::4096] = b"x" * len(kept[-1][::4096])


def _ask(gib):
    """What the caching allocator does with a request, and what it says where there is no room for it."""
    if gpu["held"] + gib + _OTHER_GIB <= _DEVICE_GIB:
        gpu["held"] += gib
        return
    free = _DEVICE_GIB - _OTHER_GIB - gpu["held"]
    raise torch.OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {gib:.2f} GiB. GPU 0 has a total capacity of {_DEVICE_GIB} GiB of which "
        f"{free:.2f} GiB is free. Including non-PyTorch memory, this process has {gpu['held'] + _OTHER_GIB:.2f} GiB memory in "
        f"use. Of the allocated memory {gpu['held']:.2f} GiB is allocated by PyTorch, and 214.50 MiB is reserved by PyTorch "
        "but unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF="
        "expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
        "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


def before(step):
    if step > 5 and HERE:
        if KIND in {"mem-slope", "mem-kill", "mem-cgroup", "mem-slurm"}:
            _keep(NUMBERS["mb"])
        elif KIND == "mem-tensors":
            kept.append(torch.ones(int(NUMBERS["mb"] * 1e6 / 4)))
        elif KIND == "mem-gpu-slope":
            _ask(NUMBERS["gib"])
    if step == AT and HERE and KIND in {"mem-kill", "mem-cgroup", "mem-slurm"}:
        sys.stdout.flush()
        {"mem-cgroup": _kernel_lines, "mem-slurm": _slurm_line}.get(KIND, lambda: None)()
        os.kill(os.getpid(), signal.SIGKILL)


def evaluating(_step):
    if KIND == "mem-stairs":
        _keep(NUMBERS["mb"])
    elif KIND == "mem-gpu-stairs":
        _ask(NUMBERS["gib"])


def memory(_step):
    return gpu["held"] if KIND.startswith("mem-gpu") else None


def batch(step, inputs, labels):
    if step == AT and HERE:
        if KIND == "mem-batch":
            note(onset=step)
            return inputs.repeat(400_000, 1), labels.repeat(400_000, 1)
        if KIND == "mem-gpu-batch":
            note(onset=step)
            _ask(max(NUMBERS["gib"], _DEVICE_GIB - _MODEL_GIB))
    return inputs, labels


def _kernel_lines():
    """What the kernel's log says of a process that a memory cgroup's limit killed, saved beside the job's log."""
    pid, total, held = os.getpid(), _held_pages() * 4, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    limit, group = held + 1024, "/system.slice/slurmstepd.scope/job_48213"
    lines = (
        "python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        f"memory: usage {limit}kB, limit {limit}kB, failcnt 1873",
        "Tasks state (memory values in pages):",
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
        f"[{pid:7d}]  1000 {pid:5d} {total // 4:8d} {held // 4:8d}   1654784        0             0 python",
        f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-1,oom_memcg={group},"
        f"task_memcg={group}/step_0/user/task_0,task=python,pid={pid},uid=1000",
        f"Memory cgroup out of memory: Killed process {pid} (python) total-vm:{total}kB, anon-rss:{held}kB, "
        "file-rss:61440kB, shmem-rss:0kB, UID:1000 pgtables:1616kB oom_score_adj:0",
    )
    stamp = time.strftime("[%a %b %e %H:%M:%S %Y] ")
    Path("dmesg.log").write_text("".join(f"{stamp}{line}\n" for line in lines))


def _slurm_line():
    text = (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=48213.0. Some of the step tasks have been OOM Killed."
    )
    print(text, file=sys.stderr, flush=True)
