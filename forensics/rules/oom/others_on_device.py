"""OOM011 others-on-device: other processes held a large part of the device when memory ran out.

What it detects: an out-of-memory message that counts the memory of other processes on the same device.

Why it matters: the job would have fitted on an empty device; a smaller batch hides a stale process or two jobs on one
device.

How it decides: the first fatal device message names other processes with a tenth of the device or more between them. A
single process that holds just what the allocator reports is the run itself, seen from outside of its container.

What else looks like this: several ranks that were placed on one device by mistake (see LOCAL_RANK); an inference
engine that shares the device with the trainer by design.

What to do next: `nvidia-smi` on that host for stale processes; check CUDA_VISIBLE_DEVICES and LOCAL_RANK.

References: PyTorch, c10/cuda/CUDACachingAllocator.cpp, the text of the error; NVIDIA, nvidia-smi.

Example:
    ```events source,line,code,text,attrs
    train.log,40,cuda-oom,CUDA out of memory. Tried to allocate 96.00 MiB. GPU 1 has a total capacity of 31.25 GiB of which 12.50 MiB is free. Process 811 has 22.75 GiB memory in use. Including non-PyTorch memory this process has 8.25 GiB memory in use. Of the allocated memory 7.25 GiB is allocated by PyTorch and 120.50 MiB is reserved by PyTorch but unallocated.,"{""role"":""root"",""shape"":""oom""}"
    ```
    => OOM011 warning confidence=high cause=others_on_device causal=context others_bytes=24427626496
Not this: the run's own process under the number that the driver knows it by
    ```events source,line,code,text,attrs
    train.log,40,cuda-oom,CUDA out of memory. Tried to allocate 96.00 MiB. GPU 1 has a total capacity of 31.25 GiB of which 12.50 MiB is free. Process 811 has 31.00 GiB memory in use. Of the allocated memory 30.25 GiB is allocated by PyTorch and 120.50 MiB is reserved by PyTorch but unallocated.,"{""role"":""root"",""shape"":""oom""}"
    ```
    => nothing
"""  # noqa: E501 - a line of a log is one line

from __future__ import annotations

from forensics.rules.kit import Findings, Run, rule
from forensics.rules.oom._memory import fatal, message_evidence, message_onset, ranks, size


@rule("oom", needs=("events", "metrics"), severity="warning", cause="others_on_device", causal="context")
def others_on_device(run: Run) -> Findings:
    """Find the first fatal message of a device that is shared."""
    found = [m for m in fatal(run) if m.reading == "others"]
    if not found or found[0] is not fatal(run)[0]:
        return
    first = found[0]
    held, whole = first.sizes.others or 0, first.sizes.capacity or 1
    yield others_on_device.finding(
        f"other processes held {size(held)} ({100 * min(1.0, held / whole):.0f} %) of the full device",
        "the message counts them beside the run's own process",
        tuple(message_evidence(m) for m in found[:3]),
        message_onset(first),
        confidence="high" if first.sizes.own else "medium",
        culprits=ranks(first),
        numbers={"others_bytes": held, "capacity_bytes": whole},
    )
