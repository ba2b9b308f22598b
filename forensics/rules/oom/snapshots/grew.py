"""OOM023 snapshots-grow: what one stack holds grows from snapshot to snapshot of the same device.

What it detects: three or more snapshots of one device in which the live bytes of a stack rise each time.

Why it matters: growth over snapshots needs no recording, only stacks; it sees leaks that are slower than a recording.

How it decides: snapshots of a device (and rank) are put in the order of their recordings, else of their names with
numbers as numbers. A stack counts when its live bytes rise at every snapshot and by `least` bytes in all, and when
that is `share` of the growth of all stacks. The first snapshot is often taken before optimizer states exist, so growth
must go on behind it.

What else looks like this: a cache that fills; snapshots of growing phases of one step.

What to do next: see which line it is; `forensics memory A B` shows all stacks that grew.

References: PyTorch documentation, "Understanding CUDA Memory Usage".

Example:
    ```segments source,addr,total_size,allocated_size,active_size,device
    step_1.pickle,4096,90000000,10000000,10000000,0
    step_2.pickle,4096,90000000,30000000,30000000,0
    step_3.pickle,4096,90000000,50000000,50000000,0
    ```
    ```blocks source,seq,segment,addr,size,requested_size,state,stack,device
    step_1.pickle,0,0,4096,10000000,10000000,active_allocated,0,0
    step_1.pickle,1,0,10004096,80000000,0,inactive,,0
    step_2.pickle,0,1,4096,30000000,30000000,active_allocated,0,0
    step_2.pickle,1,1,30004096,60000000,0,inactive,,0
    step_3.pickle,0,2,4096,50000000,50000000,active_allocated,0,0
    step_3.pickle,1,2,50004096,40000000,0,inactive,,0
    ```
    ```frames source,frame,file,line,function
    step_1.pickle,0,/home/ann/log.py,31,remember
    step_2.pickle,0,/home/ann/log.py,31,remember
    step_3.pickle,0,/home/ann/log.py,31,remember
    ```
    ```stacks source,stack,depth,frame
    step_1.pickle,0,0,0
    step_2.pickle,0,0,0
    step_3.pickle,0,0,0
    ```
    => OOM023 warning confidence=medium cause=leak bytes=40000000 snapshots=3
Not this: it comes and goes
    ```segments source,addr,total_size,allocated_size,active_size,device
    step_1.pickle,4096,90000000,10000000,10000000,0
    step_2.pickle,4096,90000000,30000000,30000000,0
    step_3.pickle,4096,90000000,10000000,10000000,0
    ```
    ```blocks source,seq,segment,addr,size,requested_size,state,stack,device
    step_1.pickle,0,0,4096,10000000,10000000,active_allocated,0,0
    step_1.pickle,1,0,10004096,80000000,0,inactive,,0
    step_2.pickle,0,1,4096,30000000,30000000,active_allocated,0,0
    step_2.pickle,1,1,30004096,60000000,0,inactive,,0
    step_3.pickle,0,2,4096,10000000,10000000,active_allocated,0,0
    step_3.pickle,1,2,10004096,80000000,0,inactive,,0
    ```
    ```frames source,frame,file,line,function
    step_1.pickle,0,/home/ann/log.py,31,remember
    step_2.pickle,0,/home/ann/log.py,31,remember
    step_3.pickle,0,/home/ann/log.py,31,remember
    ```
    ```stacks source,stack,depth,frame
    step_1.pickle,0,0,0
    step_2.pickle,0,0,0
    step_3.pickle,0,0,0
    ```
    => nothing
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from forensics.analyses.snapshots.per_device import Snapshot, Stack, grown, site_of, snapshots
from forensics.rules.kit import Finding, Findings, Run, proof, rule
from forensics.rules.oom._memory import size
from forensics.rules.oom.snapshots._shared import NEEDS, chain, evidence, ranks, short, state_quote


@dataclass(frozen=True, slots=True)
class Growing:
    """Thresholds of OOM023: snapshots, bytes of growth in all, and its share of all growth."""

    fewest: int = 3
    least: int = 16 << 20
    share: float = 0.25


@rule("oom", needs=NEEDS, config=Growing, severity="warning", cause="leak")
def snapshot_grew(run: Run, cfg: Growing) -> Findings:
    """Name the stack that grew most over the snapshots of a device."""
    found = [hit for row in _rows(snapshots(run)) if len(row) >= cfg.fewest and (hit := _grew(row, cfg)) is not None]
    if found:
        yield _finding(*max(found, key=lambda hit: hit[2]))


def _rows(all_of: Sequence[Snapshot]) -> list[list[Snapshot]]:
    """Snapshots of the same device and rank in their order."""
    groups: dict[tuple[int | None, int], list[Snapshot]] = {}
    for one in all_of:
        groups.setdefault((one.rank, one.device), []).append(one)
    return [_in_order(row) for row in groups.values()]


def _in_order(row: list[Snapshot]) -> list[Snapshot]:
    """Sort by the end of the recording where all have one, else by name with numbers as numbers."""
    if all(one.end_t_ns is not None for one in row):
        return sorted(row, key=lambda one: one.end_t_ns or 0)
    return sorted(row, key=lambda one: [int(part) for part in re.findall(r"\d{1,18}", one.source)])


def _grew(row: Sequence[Snapshot], cfg: Growing) -> tuple[Sequence[Snapshot], Stack, int] | None:
    """Give the stack that grows at every snapshot by most, and by how much."""
    first, last = row[0], row[-1]
    growth = grown(first, last)
    total = sum(one.bytes for one in growth)
    for one in growth:
        if not one.stack or one.bytes < max(cfg.least, cfg.share * total):
            continue
        held = [sum(share.bytes for share in snap.live_by_stack if share.stack == one.stack) for snap in row]
        if all(b > a for a, b in pairwise(held)):
            return row, one.stack, one.bytes
    return None


def _finding(row: Sequence[Snapshot], stack: Stack, rise: int) -> Finding:
    last = row[-1]
    return snapshot_grew.finding(
        f"what {short(site_of(stack))} holds grew by {size(rise)} over {len(row)} snapshots",
        f"it rose from each snapshot of device {last.device} to the next",
        proof(
            evidence(last, f"{size(rise)} more than in {row[0].source}: {chain(stack)}", value=rise),
            evidence(row[0], state_quote(row[0])),
        ),
        confidence="high" if len(row) >= 5 else "medium",
        culprits=ranks(last),
        numbers={"bytes": rise, "snapshots": len(row), "site": site_of(stack)},
        next=(f"forensics memory {row[0].source} {last.source}",),
    )
