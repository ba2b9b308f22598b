"""OOM020 snapshot-leak-site: a memory snapshot names the line whose allocations pile up.

What it detects: a stack whose allocations were recorded, never given back, and made again all over the recording.

Why it matters: a curve of memory says that something is kept; a snapshot says which line keeps it.

How it decides: allocations that live to the end are grouped by the line that made them. A group counts when it grew
in at least `spread` of the tenths of the recording and to its end, along a line over time and over three steps or
more, and holds `least` bytes or `share` of what is allocated. Where a stack frees some of what it makes, only what is
twice as old as the freed ones counts: a bounded cache is no leak. A recording without steps must repeat some work and
give nearly all of it back, as one of requests does.

What else looks like this: a cache that is still filling; metrics collected on the device until an epoch ends.

What to do next: look at who keeps what the line makes: a list of losses without `.detach()`, a hook, a retained graph.

References: PyTorch documentation, "Understanding CUDA Memory Usage" and `torch.cuda.memory`.

Example:
    ```allocs
    action: alloc alloc free_completed alloc alloc free_completed alloc alloc free_completed alloc alloc free_completed
    addr: 4096 90000000 4096 4096 92000000 4096 4096 94000000 4096 4096 96000000 4096
    size: 30000000 2000000 30000000 30000000 2000000 30000000 30000000 2000000 30000000 30000000 2000000 30000000
    stack: 0 1 2 0 1 2 0 1 2 0 1 2
    ```
    ```segments addr,total_size,allocated_size,active_size,device
    4096,40000000,0,0,0
    90000000,8000000,8000000,8000000,0
    ```
    ```blocks segment,addr,size,requested_size,state,stack,device
    0,4096,40000000,0,inactive,,0
    1,90000000,2000000,2000000,active_allocated,1,0
    1,92000000,2000000,2000000,active_allocated,1,0
    1,94000000,2000000,2000000,active_allocated,1,0
    1,96000000,2000000,2000000,active_allocated,1,0
    ```
    ```frames frame,file,line,function
    0,/home/ann/net.py,12,forward
    1,/home/ann/log.py,31,remember
    2,/opt/torch/optim/adam.py,80,step
    ```
    ```stacks stack,depth,frame
    0,0,0
    1,0,1
    2,0,2
    ```
    => OOM020 warning confidence=medium cause=leak per_step=2000000 spread=0.4000
Not this: weights, made once
    ```allocs
    action: alloc*4 free_completed alloc free_completed alloc free_completed
    addr: 90000000 92000000 94000000 4096*6
    size: 2000000*3 30000000*6
    stack: 1*3 0 2 0 2 0 2
    ```
    ```segments addr,total_size,allocated_size,active_size,device
    4096,40000000,0,0,0
    90000000,6000000,6000000,6000000,0
    ```
    ```blocks segment,addr,size,requested_size,state,stack,device
    0,4096,40000000,0,inactive,,0
    1,90000000,2000000,2000000,active_allocated,1,0
    1,92000000,2000000,2000000,active_allocated,1,0
    1,94000000,2000000,2000000,active_allocated,1,0
    ```
    ```frames frame,file,line,function
    0,/home/ann/net.py,12,forward
    1,/home/ann/net.py,4,make_weights
    2,/opt/torch/optim/adam.py,80,step
    ```
    ```stacks stack,depth,frame
    0,0,0
    1,0,1
    2,0,2
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.snapshots.per_device import Leak, Snapshot, snapshots
from forensics.rules.kit import Finding, Findings, Run, proof, rule
from forensics.rules.oom._memory import size
from forensics.rules.oom.snapshots._shared import NEEDS, chain, evidence, ranks, short


@dataclass(frozen=True, slots=True)
class Piling:
    """Thresholds of OOM020: bytes that survive, or their share of what is allocated at the end.

    1 MiB is the size above which the allocator has a pool of its own.
    """

    least: int = 1 << 20
    share: float = 0.01


@rule("oom", needs=NEEDS, config=Piling, cause="leak")
def snapshot_leak(run: Run, cfg: Piling) -> Findings:
    """Name the worst leak site of each snapshot, the largest first, each site once."""
    seen: set[str] = set()
    found = [(one, leak) for one in snapshots(run) for leak in one.leaks[:1] if _counts(one, leak, cfg)]
    for one, leak in sorted(found, key=lambda pair: -pair[1].bytes):
        if leak.site not in seen:
            seen.add(leak.site)
            yield _finding(one, leak)


def _counts(one: Snapshot, leak: Leak, cfg: Piling) -> bool:
    return leak.bytes >= cfg.least or leak.bytes >= cfg.share * max(one.allocated_bytes, 1)


def _finding(one: Snapshot, leak: Leak) -> Finding:
    step = "" if leak.per_step is None else f", about {size(leak.per_step)} each step"
    period = "" if not leak.period or leak.period < 1.5 else f", every {leak.period:.0f} steps"
    return snapshot_leak.finding(
        f"{short(leak.site)} keeps {size(leak.bytes)} in {leak.count} allocations{step}{period}",
        f"none of them was given back; they were made in {leak.spread:.0%} of the tenths of a recording of "
        f"{leak.steps} {'repetitions' if leak.per_step is None else 'steps'}, in a straight line"
        f" (r = {leak.linearity:.3f})",
        proof(
            evidence(one, f"first of {leak.count} allocations that stay: {chain(leak.stack)}", seq=leak.seq),
            *(
                evidence(one, f"next: {size(other.bytes)} at {chain(other.stack)}", seq=other.seq)
                for other in one.leaks[1:4]
            ),
        ),
        severity="error" if one.ooms else "warning",
        confidence=leak.confidence,
        culprits=ranks(one),
        numbers={
            "bytes": leak.bytes,
            "count": leak.count,
            "per_step": leak.per_step or 0.0,
            "spread": leak.spread,
            "linearity": leak.linearity,
            "site": leak.site,
        },
        next=(f"look at what {short(leak.site)} makes, and who keeps it after the step",),
    )
