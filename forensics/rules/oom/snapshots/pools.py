"""OOM025 private-pools-hold: private memory pools keep much of the device without using it.

What it detects: pools other than the default one (CUDA graphs, user pools) whose free memory is above `share` of all
that is reserved.

Why it matters: what a private pool has reserved, no other allocation can use, and emptying the cache does not free it.

How it decides: reserved less active bytes of all private pools of a device, at the end of a snapshot.

What else looks like this: a graph that is replayed uses its pool without allocations, so its memory looks free and is
not; this is why it is only worth knowing.

What to do next: capture the largest shape first and share one pool between graphs; capture fewer shapes.

References: PyTorch documentation, "CUDA Graphs": memory pools.

Example:
    ```segments addr,total_size,allocated_size,active_size,device,pool_owner,pool
    4096,500000000,500000000,500000000,0,0,0
    900000000,400000000,1000000,1000000,0,0,1
    ```
    ```blocks segment,addr,size,requested_size,state,device
    0,4096,500000000,500000000,active_allocated,0
    1,900000000,1000000,1000000,active_allocated,0
    1,901000000,399000000,0,inactive,0
    ```
    => OOM025 info confidence=medium cause=private_pools causal=context pools=1 idle_bytes=399000000
Not this: free memory of the default pool
    ```segments addr,total_size,allocated_size,active_size,device,pool_owner,pool
    4096,500000000,500000000,500000000,0,0,0
    900000000,400000000,1000000,1000000,0,0,0
    ```
    ```blocks segment,addr,size,requested_size,state,device
    0,4096,500000000,500000000,active_allocated,0
    1,900000000,1000000,1000000,active_allocated,0
    1,901000000,399000000,0,inactive,0
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
class Private:
    """Thresholds of OOM025: free bytes of private pools over all reserved bytes."""

    share: float = 0.15


@rule("oom", needs=NEEDS, config=Private, severity="info", confidence="medium", cause="private_pools", causal="context")
def snapshot_pools(run: Run, cfg: Private) -> Findings:
    """Report the device whose private pools keep most."""
    found = [one for one in snapshots(run) if _idle(one) > cfg.share * max(one.reserved_bytes, 1)]
    if found:
        yield _finding(max(found, key=_idle))


def _idle(one: Snapshot) -> int:
    return sum(pool.reserved_bytes - pool.allocated_bytes for pool in one.pools if pool.pool != (0, 0))


def _finding(one: Snapshot) -> Finding:
    private = [pool for pool in one.pools if pool.pool != (0, 0)]
    idle = _idle(one)
    return snapshot_pools.finding(
        f"{len(private)} private pools keep {size(idle)} of {size(one.reserved_bytes)} without allocations in it",
        "memory of a private pool serves no other allocation, and emptying the cache does not free it",
        proof(evidence(one, state_quote(one), value=idle)),
        culprits=ranks(one),
        numbers={"pools": len(private), "idle_bytes": idle, "reserved_bytes": one.reserved_bytes},
    )
