"""Memory snapshots as values: one per file and device, with exact accounting, fragmentation, leak sites and growth.

The rules, `forensics memory` and the reports read these; none of them touches the tables of a snapshot itself.
A stack is given innermost frame first, each frame as `file:line function`.
"""

from __future__ import annotations

from forensics.analyses.snapshots._values import Growth, Leak, Oom, Pool, Share, Snapshot, Stack, site_of
from forensics.analyses.snapshots.growth import grown
from forensics.analyses.snapshots.state import made
from forensics.store.run import Run

__all__ = ["Growth", "Leak", "Oom", "Pool", "Share", "Snapshot", "Stack", "grown", "site_of", "snapshots"]


def snapshots(run: Run) -> tuple[Snapshot, ...]:
    """Every memory snapshot of a run, one for each device that it says something of, by source and device."""
    return run.derived(made)
