"""OOM015 outside-the-allocator: much of the device is held by what the framework's allocator does not count.

What it detects: memory of the run's own process that is neither allocated nor reserved by the framework, as an
out-of-memory message or the driver's own count shows it.

Why it matters: no snapshot shows it and no smaller cache frees it: the context, communicators (one set of buffers per
process group), workspaces of cuBLAS, compiled graphs, another library with an allocator of its own.

How it decides: what the process holds less what is allocated and reserved is at least `gib`, in a fatal message or
measured as the driver's used memory less the reserved memory. The usual context and communicator take 0.3 to 1.5 GiB.

What else looks like this: several processes on one device, where only the device's total is logged.

What to do next: fewer process groups, a smaller NCCL_BUFFSIZE; lower the memory share of an inference engine in the
same process.

References: PyTorch, CUDA semantics, "Memory management", on what the allocator does not see; NCCL, NCCL_BUFFSIZE.

Example:
    ```events source,line,code,text,attrs
    train.log,40,cuda-oom,CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 39.50 GiB of which 750.25 MiB is free. Including non-PyTorch memory this process has 38.75 GiB memory in use. Of the allocated memory 29.25 GiB is allocated by PyTorch and 1.25 GiB is reserved by PyTorch but unallocated.,"{""role"":""root"",""shape"":""oom""}"
    ```
    => OOM015 warning cause=outside_allocator
Not this: a context and a communicator
    ```events source,line,code,text,attrs
    train.log,40,cuda-oom,CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 39.50 GiB of which 750.25 MiB is free. Including non-PyTorch memory this process has 38.75 GiB memory in use. Of the allocated memory 37.25 GiB is allocated by PyTorch and 350.75 MiB is reserved by PyTorch but unallocated.,"{""role"":""root"",""shape"":""oom""}"
    ```
    => nothing
"""  # noqa: E501 - a line of a log is one line

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules.oom._memory import GIB, fatal, message_evidence, onset_at, ranks, size
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of OOM015: twice what a context and communicators usually take."""

    gib: float = 3.0


@rule("OOM015", shape=Shape.OOM, needs=("events", "metrics"), config=Config)
def outside_the_allocator(run: Run, cfg: Config | None = None) -> Iterator[Finding]:
    """Judge the first fatal device message that counts the whole process."""
    cfg = cfg or Config()
    first = next((m for m in fatal(run) if m.sizes.outside is not None), None)
    if first is None or (first.sizes.outside or 0) < cfg.gib * GIB:
        return
    yield Finding(
        rule="OOM015",
        shape=Shape.OOM,
        severity=Severity.WARNING,
        confidence=Confidence.MEDIUM,
        title=f"{size(first.sizes.outside)} of the process's device memory is not the allocator's",
        because="what the process holds, less what is allocated and reserved by the framework, is that much",
        evidence=(message_evidence(first),),
        onset=onset_at(first),
        culprits=ranks(first),
        cause="outside_allocator",
        causal=Causal.CONTEXT,
        numbers={"outside_bytes": first.sizes.outside or 0},
        likely=("communicators of many process groups", "another library with its own allocator in the same process"),
        next=("fewer process groups, or a smaller NCCL_BUFFSIZE", "lower the share of an engine in the same process"),
    )
