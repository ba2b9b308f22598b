"""OOM022 snapshot-fragmentation: free memory that the allocator holds and can neither use nor give back.

What it detects: free blocks in segments that an active block keeps, above `share` of what is reserved, at the end of a
recording or at its out-of-memory event.

Why it matters: the device says full while a part of it is free in pieces that fit no request.

How it decides: free blocks in segments without any active block are cache and can be given back; those beside an active
block cannot, unless the segment is expandable. Their sum over the reserved bytes must reach `share`. It is a warning
when the recording holds an out-of-memory event whose request is larger than the largest piece and would have fitted
into all of them; else it is only worth knowing, as most of them will be used again. Segments that expand are advised
only where they are off.

What else looks like this: private pools of graphs, which keep their memory on purpose.

What to do next: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`; or fewer different sizes (pad to a few lengths).

References: PyTorch documentation, "Optimizing memory usage with PYTORCH_CUDA_ALLOC_CONF"; Guo et al., "GMLake" (2024).

Example:
    ```allocs action,addr,size,device_free
    oom,,300000000,1000000
    ```
    ```segments addr,total_size,allocated_size,active_size,device,is_expandable
    4096,500000000,250000000,250000000,0,false
    900000000,500000000,260000000,260000000,0,false
    ```
    ```blocks segment,addr,size,requested_size,state,device
    0,4096,250000000,250000000,active_allocated,0
    0,250004096,250000000,0,inactive,0
    1,900000000,260000000,260000000,active_allocated,0
    1,1160000000,240000000,0,inactive,0
    ```
    => OOM022 warning confidence=high cause=fragmentation fragmentation=0.4900 scatter=0.4898
Not this: whole segments are free
    ```allocs action,addr,size,device_free
    oom,,900000000,1000000
    ```
    ```segments addr,total_size,allocated_size,active_size,device,is_expandable
    4096,500000000,500000000,500000000,0,false
    900000000,500000000,0,0,0,false
    ```
    ```blocks segment,addr,size,requested_size,state,device
    0,4096,500000000,500000000,active_allocated,0
    1,900000000,500000000,0,inactive,0
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.snapshots.per_device import Snapshot, snapshots
from forensics.rules.kit import Finding, Findings, Run, proof, rule
from forensics.rules.oom._memory import size
from forensics.rules.oom.snapshots._shared import NEEDS, evidence, ranks, state_quote


@dataclass(frozen=True, slots=True)
class Pieces:
    """Thresholds of OOM022: unreleasable over reserved bytes, and the least of them to speak of.

    A tenth is where expandable segments begin to be worth advising; a recorded clean loop has less.
    """

    share: float = 0.10
    least: int = 64 << 20


@rule("oom", needs=NEEDS, config=Pieces, cause="fragmentation")
def snapshot_fragmentation(run: Run, cfg: Pieces) -> Findings:
    """Report the most fragmented device of the run's snapshots."""
    found = [
        one
        for one in snapshots(run)
        if one.quality != "inconsistent" and one.fragmentation > cfg.share and one.unreleasable_bytes >= cfg.least
    ]
    if found:
        yield _finding(max(found, key=lambda one: (_would_fit(one), one.fragmentation)))


def _would_fit(one: Snapshot) -> bool:
    """Whether an out-of-memory request was smaller than the pieces together, and larger than each."""
    oom = one.oom
    return oom is not None and one.largest_piece_bytes < oom.asked_bytes <= one.unreleasable_bytes + (
        oom.free_bytes or 0
    )


def _finding(one: Snapshot) -> Finding:
    fatal = _would_fit(one)
    asked = "" if one.oom is None else f"; {size(one.oom.asked_bytes)} were asked for when memory ran out"
    return snapshot_fragmentation.finding(
        f"{size(one.unreleasable_bytes)} ({one.fragmentation:.0%}) of reserved memory are free in pieces that "
        "cannot be given back",
        f"the largest piece is {size(one.largest_piece_bytes)}; {state_quote(one)}{asked}",
        proof(evidence(one, state_quote(one), value=one.fragmentation)),
        severity="warning" if fatal else "info",
        confidence="high" if fatal else "medium",
        culprits=ranks(one),
        causal="root" if fatal else "context",
        numbers={
            "unreleasable_bytes": one.unreleasable_bytes,
            "largest_piece_bytes": one.largest_piece_bytes,
            "reserved_bytes": one.reserved_bytes,
            "fragmentation": one.fragmentation,
            "scatter": one.scatter,
        },
    )
