"""OOM015 outside-the-allocator: much of the device is held by what the framework's allocator does not count.

What it detects: memory of the run's own process that is neither allocated nor reserved by the framework, as an
out-of-memory message or the driver's own count shows it.

Why it matters: no snapshot shows it and no smaller cache frees it: the context, communicators (one set of buffers per
process group), workspaces of cuBLAS, compiled graphs, another library with an allocator of its own.

How it decides: what the process holds less what is allocated and reserved is at least `gib`, in a fatal message. Where
no such message counts the process, the driver's used memory less the reserved memory stands for it, both at their
highest, where one source logs both: a warning when the run ended in an out-of-memory error of the device, else a note.
The usual context and communicator take 0.3 to 1.5 GiB.

What else looks like this: several processes on one device, where only the device's total is logged.

What to do next: fewer process groups, a smaller NCCL_BUFFSIZE; lower the memory share of an inference engine in the
same process.

References: PyTorch, CUDA semantics, "Memory management", on what the allocator does not see; NCCL, NCCL_BUFFSIZE.

Example:
    ```events source,line,code,text,attrs
    train.log,40,cuda-oom,CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 39.50 GiB of which 750.25 MiB is free. Including non-PyTorch memory this process has 38.75 GiB memory in use. Of the allocated memory 29.25 GiB is allocated by PyTorch and 1.25 GiB is reserved by PyTorch but unallocated.,"{""role"":""root"",""shape"":""oom""}"
    ```
    => OOM015 warning confidence=medium cause=outside_allocator causal=context outside_bytes=8858370048

Example: the driver counts more than the allocator, in a run that goes on
    ```metrics step,name,value,source,seq
    10,mem_reserved_gib,41.5,m.csv,1
    10,gpu_mem_used_gib,47.25,m.csv,1
    20,mem_reserved_gib,41.75,m.csv,2
    20,gpu_mem_used_gib,47.75,m.csv,2
    ```
    => OOM015 info confidence=low step=20 cause=outside_allocator causal=context outside_bytes=6442450944
Not this: a context and a communicator
    ```events source,line,code,text,attrs
    train.log,40,cuda-oom,CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 39.50 GiB of which 750.25 MiB is free. Including non-PyTorch memory this process has 38.75 GiB memory in use. Of the allocated memory 37.25 GiB is allocated by PyTorch and 350.75 MiB is reserved by PyTorch but unallocated.,"{""role"":""root"",""shape"":""oom""}"
    ```
    => nothing
"""  # noqa: E501 - a line of a log is one line

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.analyses.memory.capacity import Beside, beside_reserved
from forensics.analyses.memory.oom_messages import OomMessage
from forensics.analyses.memory.series import Series, series_of
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule
from forensics.rules.oom._memory import GIB, fatal, message_evidence, message_onset, ranks, series_evidence, size


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of OOM015: twice what a context and communicators usually take."""

    gib: float = 3.0


@rule("oom", needs=("events", "metrics", "facts"), config=Config, cause="outside_allocator", causal="context")
def outside_the_allocator(run: Run, cfg: Config) -> Findings:
    """Judge the first fatal device message that counts the whole process, else the driver's count beside it."""
    died = fatal(run)
    first = next((m for m in died if m.sizes.outside is not None), None)
    if first is not None:
        if (first.sizes.outside or 0) >= cfg.gib * GIB:
            yield _of_message(first)
        return
    found = max(beside_reserved(run), key=lambda one: one.gib, default=None)
    if found is not None and found.gib >= cfg.gib:
        yield from _of_driver(run, found, died)


def _of_message(first: OomMessage) -> Finding:
    return outside_the_allocator.finding(
        f"{size(first.sizes.outside)} of the process's device memory is not the allocator's",
        "the process holds so much more than the framework allocated and reserved",
        proof(message_evidence(first)),
        message_onset(first),
        severity="warning",
        confidence="medium",
        culprits=ranks(first),
        numbers={"outside_bytes": first.sizes.outside or 0},
    )


def _of_driver(run: Run, found: Beside, died: tuple[OomMessage, ...]) -> Findings:
    used, held = (_series(run, found, name) for name in (found.used, found.reserved))
    if used is None or held is None:
        return
    tops = [int(np.argmax(one.y)) for one in (used, held)]
    yield outside_the_allocator.finding(
        f"{size(found.gib * GIB)} of the device's used memory is not the allocator's",
        "the driver counts so much more as used than the framework reserved;"
        " other processes on the device are included",
        proof(
            *series_evidence(used, tops[0]), *series_evidence(held, tops[1]), *(message_evidence(m) for m in died[:1])
        ),
        Onset(step=used.step(tops[0]), rank=used.rank),
        severity="warning" if died else "info",
        confidence="low",
        culprits=ranks(used) if died else (),
        numbers={"outside_bytes": round(found.gib * GIB)},
    )


def _series(run: Run, found: Beside, name: str) -> Series | None:
    """Give the series of one name in the source and rank that a difference was taken of, by its highest value."""
    same = [s for s in series_of(run) if (s.source, s.rank, s.name) == (found.source, found.rank, name)]
    return max(same, key=lambda s: s.peak, default=None)
