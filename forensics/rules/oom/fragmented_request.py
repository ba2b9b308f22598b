"""OOM013 fragmented-request: the request would have fitted into memory that the allocator held and could not use.

What it detects: an out-of-memory message whose reserved but unallocated memory is larger than the request.

Why it matters: before it gives up, the allocator returns every whole free segment to the driver. What it still holds
lies in pieces of segments that something else keeps: fragmentation, which a smaller batch cures only by chance.

How it decides: in the first fatal device message, unallocated memory is at least the request, and `share` of the
device or more; the device itself had less free than the request.

What else looks like this: a graph that was captured holds its own pools; a request of a size that no piece fits only
because it is huge.

What to do next: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` where it is not on (it is suggested only then);
fewer different shapes.

References: PyTorch, c10/cuda/CUDACachingAllocator.cpp; CUDA semantics, "Optimizing memory usage".

Example:
    ```events source,line,code,text,attrs
    train.log,40,cuda-oom,CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 39.50 GiB of which 750.25 MiB is free. Including non-PyTorch memory this process has 38.75 GiB memory in use. Of the allocated memory 29.25 GiB is allocated by PyTorch and 8.75 GiB is reserved by PyTorch but unallocated.,"{""role"":""root"",""shape"":""oom""}"
    ```
    => OOM013 warning confidence=medium cause=fragmentation causal=context unallocated_bytes=9395240960
Not this: a device that is full
    ```events source,line,code,text,attrs
    train.log,40,cuda-oom,CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 39.50 GiB of which 750.25 MiB is free. Including non-PyTorch memory this process has 38.75 GiB memory in use. Of the allocated memory 37.25 GiB is allocated by PyTorch and 350.75 MiB is reserved by PyTorch but unallocated.,"{""role"":""root"",""shape"":""oom""}"
    ```
    => nothing
"""  # noqa: E501 - a line of a log is one line

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.rules.kit import Findings, Run, proof, rule
from forensics.rules.oom._memory import fatal, message_evidence, message_onset, ranks, size


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of OOM013: the share of the device from which unusable memory is worth a setting."""

    share: float = 0.1


@rule(
    "oom",
    needs=("events", "metrics", "facts"),
    config=Config,
    severity="warning",
    cause="fragmentation",
    causal="context",
)
def fragmented_request(run: Run, cfg: Config) -> Findings:
    """Judge the numbers of the first fatal device message."""
    first = next(iter(fatal(run)), None)
    if first is None or first.reading != "fragmentation":
        return
    sizes, unused = first.sizes, first.sizes.unallocated or 0
    if sizes.capacity and unused < cfg.share * sizes.capacity:
        return
    on = expandable(run)
    yield fragmented_request.finding(
        f"{size(unused)} was reserved and unused when {size(sizes.tried)} could not be allocated",
        "whole free segments had been returned before, so only pieces that are too small are left",
        proof(message_evidence(first)),
        message_onset(first),
        confidence="medium" if sizes.capacity else "low",
        culprits=ranks(first),
        numbers={"unallocated_bytes": unused, "tried_bytes": sizes.tried or 0}
        | ({} if on is None else {"expandable_segments": int(on)}),
    )


# Whether the allocator of a run uses expandable segments.


def expandable(run: Run) -> bool | None:
    """Tell whether expandable segments are on by what the run's environment says; None when it does not say."""
    rows = (
        run.scan("facts")
        .filter(pl.col("key").str.contains(r"(?i)(?:CUDA|HIP)_ALLOC_CONF|PYTORCH_ALLOC_CONF|expandable_segments"))
        .select("key", "value")
        .collect()
    )
    said = " ".join(f"{key}={value}" for key, value in rows.iter_rows()).lower().replace('"', "").replace(" ", "")
    if "expandable_segments" not in said:
        return False if rows.height else None
    return "expandable_segments:true" in said or "expandable_segments=true" in said
