"""OOM001 log-says-oom: the log says that memory ran out, and the run did not go on.

What it detects: an allocator's own message (GPU allocator, cuBLAS or cuDNN handle, host allocator), the kernel's or the
scheduler's out-of-memory kill, or an exception of those classes.

Why it matters: the first rank that runs out is the cause; the time-outs and closed connections of the others follow.

How it decides: the earliest such error over all ranks that was not survived. An error is survived when the same rank
logs later steps. A bare SIGKILL (-9, 137 without a scheduler's word) proves nothing and is not counted here.

What else looks like this: a trainer that catches the error and retries with a smaller batch; other processes on the
same GPU that fail to start beside a healthy run; an exit code -9 sent by a person.

What to do next: read which allocation failed and how much was free; `forensics memory RUN` once snapshots are there.

References: PyTorch, CUDA semantics, "Memory management"; c10/cuda/CUDACachingAllocator.cpp.

Example:
    ```metrics step,name,value,source,seq,line
    40,loss,2.75,train.log,1,5
    ```
    ```events source,line,code,text,attrs
    train.log,9,cuda-oom,CUDA out of memory. Tried to allocate 1.25 GiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    => OOM001 error confidence=high step=40 step_lo=40 cause=gpu_out_of_memory messages=1
Not this:
    ```metrics step,name,value,source,seq,line
    41,loss,2.75,train.log,1,10
    42,loss,2.74,train.log,2,11
    43,loss,2.72,train.log,3,12
    ```
    ```events source,line,code,text,attrs
    train.log,9,cuda-oom,CUDA out of memory. Tried to allocate 1.25 GiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    => nothing
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight
from forensics.case.errors.timeline import in_order, is_before
from forensics.knowledge.causes import is_kind
from forensics.knowledge.errors import table
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when, who
from forensics.rules.kit import Findings, Run, rule
from forensics.rules.oom._memory import fatal

_TRIED = re.compile(r"Tried to allocate ([\d.]+ (?:bytes|[KMGT]i?B))")
#: The kind of a cause that is about the memory of the host.
_HOST = "host_memory"
#: What the program was doing, where that decides what to change.
_IN_PHASE = {
    "evaluation": " in an evaluation",
    "generation": " while it generated text",
    "loading": " while it loaded the model",
    "forward": " in the forward pass",
    "logits": " while it computed the logits",
    "backward": " in the backward pass",
    "optimizer": " in the optimizer step",
    "checkpoint": " while it saved a checkpoint",
}


@rule("oom", needs=("events", "metrics"), severity="error", confidence="high")
def log_says_oom(run: Run) -> Findings:
    """Find the first out-of-memory error that the run did not survive."""
    found = in_order(f for f in standing(run) if f.shape == "oom" and f.weight >= Weight.ECHO)
    if not found:
        return
    first = found[0]
    onset = onset_of(run, first)
    tried = _TRIED.search(first.quote) or _TRIED.search(first.message)
    host = _is_of_host(first) and not tried
    memory = "host memory" if host else "GPU memory"
    size = f" (tried to allocate {tried[1]})" if tried else ""
    phase = next((_IN_PHASE[m.phase] for m in fatal(run) if m.source == first.source and m.phase in _IN_PHASE), "")
    yield log_says_oom.finding(
        f"{who(first.rank)} ran out of {memory}{phase}{size}{when(onset)}",
        "the allocator, the kernel or the scheduler said so, and no later step of that rank was logged",
        evidence_of(found),
        onset,
        culprits=ranks_of(_named(found)),
        cause="host_out_of_memory" if host else "gpu_out_of_memory",
        numbers={"messages": len(found)},
    )


def _is_of_host(failure: Failure) -> bool:
    """Whether its cause, or a line of the catalogue that its quote fits, is about the memory of the host."""
    fits = (row for row in table() if is_kind(row.cause, _HOST) and row.compiled.search(failure.quote))
    return is_kind(failure.cause, _HOST) or any(fits)


def _named(found: Sequence[Failure]) -> Sequence[Failure]:
    """Give the first error and those that may have come as early: where nothing orders them, all ranks ran out.

    Of an error that names no rank the first line of its log that tells of the same event, and names one.
    """
    first, *others = found
    same = [f for f in others if f.cause == first.cause and f.rank is not None]
    if first.rank is None:
        return [f for f in same if f.source == first.source][:1]
    return [first, *(f for f in same if not is_before(first, f))]
