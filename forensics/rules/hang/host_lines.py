"""HNG017 host-lines: the kernel or the fabric reported a fault of a device, a link or a file system.

What it detects: Xid and SXid lines, GPUs that fell off the bus, InfiniBand retries that ran out, links that went down,
file servers that do not respond, tasks that the kernel calls blocked.

Why it matters: it turns "rank 3 did not come" into "the GPU of rank 3 is broken".

How it decides: a fault line confirms a suspicion (weight 3) where it names a process or stands in a rank's own log, and
names only the cause where it does not. Xid 45 always follows another fault, and 13, 31 and 43 are mostly the program's:
they start nothing. InfiniBand pairs: a host that is in all pairs is named in the evidence.

What else looks like this: kernel lines of another day, or of another job on the node.

What to do next: drain the node, run its diagnostics, and restart without it.

References: NVIDIA, "XID Errors"; InfiniBand verbs, work completion status.

Example:
    ```events source,line,rank,code,text,attrs
    r3.log,9,3,xid,"NVRM: Xid (PCI:0000:1a:00): 79, pid=812, GPU has fallen off the bus.","{""role"":""context""}"
    ```
    => HNG017 info confidence=low rank=3 cause=device_error causal=context weight=3
Not this:
    ```events source,line,rank,code,text,attrs
    r3.log,9,3,xid,"NVRM: Xid (PCI:0000:1a:00): 45, pid=812, Ch 00000008","{""role"":""context""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.hang.lines import matching
from forensics.case.errors.exits import exits
from forensics.knowledge import errors
from forensics.rules.hang.clue import Clue, gives_clues
from forensics.rules.kit import Run, event_evidence

#: What a line proves that names a rank, or a process of one.
_OF_RANK = 3.0


@gives_clues(needs=("events",))
def host_lines(run: Run) -> Iterator[Clue]:
    """One clue for each kind of fault and rank."""
    pids = {e.pid: e.rank for e in exits(run).by_rank.values()}
    seen: set[tuple[str, int | None]] = set()
    for line, clue in errors.clues("host"):
        for row, hit in matching(run, line.compiled, *line.needles):
            if not clue.holds(hit):
                continue
            pid = hit.groupdict().get("pid") or ""
            rank = pids.get(int(pid)) if pid.isdigit() else None
            rank = rank if rank is not None else row["rank"]
            if (clue.cause, rank) not in seen:
                seen.add((clue.cause, rank))
                named, whose = ((rank,), f" on rank {rank}") if rank is not None else ((), "")
                weight = _OF_RANK if named else clue.weight
                yield Clue(named, clue.cause, weight, "host", f"{clue.words}{whose}", (event_evidence(row),))
