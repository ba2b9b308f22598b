"""OOM024 snapshot-says-little: a memory snapshot was taken in a way that hides who holds the memory.

What it detects: snapshots without events, without stacks, with most of the memory older than the recording, or whose
numbers contradict each other.

Why it matters: whoever looks at such a snapshot sees no leak, and takes that for an answer.

How it decides: the recording is empty; or no event has a stack; or `older` of what is held at the peak was there before
the recording began; or an identity of the accounts does not hold. What is found is listed once for each kind.

What else looks like this: a snapshot that was meant for the state alone.

What to do next: switch the history on before the model is built
(`torch.cuda.memory._record_memory_history(max_entries=1_000_000)`), let it run some steps, and only then dump.

References: PyTorch documentation, "Understanding CUDA Memory Usage": generating a snapshot.

Example:
    ```segments addr,total_size,allocated_size,active_size,device
    4096,90000000,90000000,90000000,0
    ```
    ```blocks segment,addr,size,requested_size,state,device
    0,4096,90000000,90000000,active_allocated,0
    ```
    => OOM024 info confidence=high cause=snapshot_quality causal=context snapshots=1 events=0
Not this: a recording with stacks from the beginning
    ```allocs action,addr,size,stack
    segment_alloc,4096,90000000,0
    alloc,4096,90000000,0
    ```
    ```segments addr,total_size,allocated_size,active_size,device
    4096,90000000,90000000,90000000,0
    ```
    ```blocks segment,addr,size,requested_size,state,stack,device
    0,4096,90000000,90000000,active_allocated,0,0
    ```
    ```frames frame,file,line,function
    0,/home/ann/net.py,12,__init__
    ```
    ```stacks stack,depth,frame
    0,0,0
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.snapshots.per_device import Snapshot, snapshots
from forensics.rules.kit import Finding, Findings, Run, proof, rule
from forensics.rules.oom.snapshots._shared import NEEDS, evidence, ranks, state_quote


@dataclass(frozen=True, slots=True)
class Hidden:
    """Thresholds of OOM024: share of the peak that is older than the recording."""

    older: float = 0.5


@rule("oom", needs=NEEDS, config=Hidden, severity="info", confidence="high", cause="snapshot_quality", causal="context")
def snapshot_quality(run: Run, cfg: Hidden) -> Findings:
    """Report each kind of gap once, with the first snapshot that has it and how many do."""
    found: dict[str, list[Snapshot]] = {}
    for one in snapshots(run):
        kind = _kind(one, cfg)
        if kind:
            found.setdefault(kind, []).append(one)
    for kind, row in found.items():
        yield _finding(kind, row)


def _kind(one: Snapshot, cfg: Hidden) -> str:
    if one.quality == "inconsistent":
        return "contradicts itself"
    if one.quality == "state only":
        return "holds no events"
    if one.events and not one.stacked_events:
        return "has no stacks"
    before = one.start_allocated_bytes
    return "begins late: most of the memory is older than the recording" if before > cfg.older * one.peak_bytes else ""


def _finding(kind: str, row: list[Snapshot]) -> Finding:
    one = row[0]
    many = "" if len(row) == 1 else f" (and {len(row) - 1} more)"
    return snapshot_quality.finding(
        f"the memory snapshot of device {one.device} {kind}{many}",
        "; ".join(one.notes) or state_quote(one),
        proof(evidence(one, state_quote(one))),
        culprits=ranks(one),
        numbers={"snapshots": len(row), "events": one.events},
    )
