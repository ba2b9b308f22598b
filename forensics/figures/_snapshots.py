"""Which memory snapshots are drawn, and what they are called."""

from __future__ import annotations

from forensics.analyses.snapshots.per_device import Snapshot, snapshots
from forensics.model import Report
from forensics.store.run import Run

_MIB, _GIB = 2.0**20, 2.0**30
_MOST = 4


def chosen(run: Run, report: Report) -> list[Snapshot]:
    """The snapshots that are drawn: those of culprits, of which something leaks, with the highest peak first."""
    bad = report.verdict.culprits
    order = sorted(snapshots(run), key=lambda s: (s.rank not in bad, not s.leaks, -s.peak_bytes, s.source, s.device))
    return order[:_MOST]


def name_of(snapshot: Snapshot) -> str:
    """File and device, and the rank where it is known."""
    rank = f"rank {snapshot.rank}, " if snapshot.rank is not None else ""
    return f"{rank}{snapshot.source}, device {snapshot.device}"


def unit_of(most_bytes: int) -> tuple[str, float]:
    """The unit that shows so many bytes with few digits, and its size in bytes."""
    return ("GiB", _GIB) if most_bytes >= _GIB else ("MiB", _MIB)
