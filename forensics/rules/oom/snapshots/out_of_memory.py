"""OOM021 snapshot-oom-event: the recording of the allocator holds the moment at which memory ran out.

What it detects: an `oom` event in a memory snapshot that the program did not go on from.

Why it matters: the event says what was asked for, what was free, and with the stack which line asked; the blocks say
who held the rest. A log has the first two at best.

How it decides: the last `oom` event of each device. When more than `after` events follow it, the program caught the
error and went on, and nothing is said.

What else looks like this: a program that looks for the largest batch that fits, and runs into the error on purpose.

What to do next: see who holds the most at that moment in the finding; lower what is asked for, or what is held.

References: PyTorch documentation, `torch._C._cuda_attach_out_of_memory_observer` and "Understanding CUDA Memory Usage".

Example:
    ```allocs action,addr,size,stack,device_free
    alloc,4096,700000000,0,
    oom,,400000000,1,90000000
    ```
    ```segments addr,total_size,allocated_size,active_size,device
    4096,700000000,700000000,700000000,0
    ```
    ```blocks segment,addr,size,requested_size,state,stack,device
    0,4096,700000000,700000000,active_allocated,0,0
    ```
    ```frames frame,file,line,function
    0,/home/ann/net.py,12,__init__
    1,/home/ann/net.py,44,forward
    ```
    ```stacks stack,depth,frame
    0,0,0
    1,0,1
    ```
    => OOM021 error confidence=high cause=gpu_out_of_memory asked_bytes=400000000 free_bytes=90000000
Not this: no such event
    ```allocs action,addr,size,stack,device_free
    alloc,4096,700000000,0,
    ```
    ```segments addr,total_size,allocated_size,active_size,device
    4096,700000000,700000000,700000000,0
    ```
    ```blocks segment,addr,size,requested_size,state,stack,device
    0,4096,700000000,700000000,active_allocated,0,0
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.snapshots.per_device import Oom, Snapshot, site_of, snapshots
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule
from forensics.rules.oom._memory import size
from forensics.rules.oom.snapshots._shared import NEEDS, chain, evidence, ranks, short, state_quote


@dataclass(frozen=True, slots=True)
class AtTheEnd:
    """Thresholds of OOM021: events behind the last `oom` event above which the program went on; a step has more."""

    after: int = 200
    holders: int = 3


@rule("oom", needs=NEEDS, config=AtTheEnd, severity="error", cause="gpu_out_of_memory")
def snapshot_oom(run: Run, cfg: AtTheEnd) -> Findings:
    """Report the earliest fatal out-of-memory event among the snapshots."""
    found = [(one, one.oom) for one in snapshots(run) if one.oom is not None and one.oom.events_after <= cfg.after]
    if found:
        one, oom = min(found, key=lambda pair: (pair[1].t_ns is None, pair[1].t_ns or 0))
        yield _finding(one, oom, cfg, len(found))


def _finding(one: Snapshot, oom: Oom, cfg: AtTheEnd, devices: int) -> Finding:
    free = "" if oom.free_bytes is None else f" with {size(oom.free_bytes)} free on the device"
    where = f" at {short(site_of(oom.stack))}" if oom.stack else ""
    holders = one.live_by_stack[: cfg.holders]
    return snapshot_oom.finding(
        f"device {one.device} ran out of memory: {size(oom.asked_bytes)} asked for{free}{where}",
        f"the allocator recorded it, and only {oom.events_after} events follow; {state_quote(one)}",
        proof(
            evidence(one, f"oom: {size(oom.asked_bytes)} for {chain(oom.stack)}", seq=oom.seq, value=oom.asked_bytes),
            *(evidence(one, f"{size(h.bytes)} held by {chain(h.stack)} ({h.category})") for h in holders),
        ),
        Onset(t_ns=oom.t_ns, rank=one.rank),
        confidence="high" if one.trusted else "medium",
        culprits=ranks(one),
        numbers={
            "asked_bytes": oom.asked_bytes,
            "free_bytes": -1 if oom.free_bytes is None else oom.free_bytes,
            "allocated_bytes": one.allocated_bytes,
            "reserved_bytes": one.reserved_bytes,
            "devices": devices,
        },
        next=("forensics memory on the snapshot shows who holds what at the peak",),
    )
