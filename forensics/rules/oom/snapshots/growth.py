"""What piles up in memory snapshots: inside of one recording, and from one to the next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from forensics.analyses.snapshots.per_device import Leak, Snapshot, Stack, grown, site_of, snapshots
from forensics.rules.kit import Finding, Findings, Onset, Run, Struct, proof, rule
from forensics.rules.oom._memory import size
from forensics.rules.oom.snapshots._shared import NEEDS, chain, evidence, ranks, short, state_quote
from forensics.values import named


class Piling(Struct, frozen=True):
    """Thresholds of OOM020: bytes that survive, or their share of what is allocated at the end.

    1 MiB is the size above which the allocator has a pool of its own.
    """

    least: int = 1 << 20
    share: float = 0.01


@rule("OOM020 snapshot-leak-site", NEEDS, cause="leak")
def snapshot_leak(run: Run, cfg: Piling) -> Findings:
    """Name the worst leak site of each snapshot, the largest first, each site once."""
    seen: set[str] = set()
    found = [(one, leak) for one in snapshots(run) for leak in one.leaks[:1]]
    found = [
        (one, leak) for one, leak in found if leak.bytes >= min(cfg.least, cfg.share * max(one.allocated_bytes, 1))
    ]
    for one, leak in sorted(found, key=lambda pair: -pair[1].bytes):
        if leak.site not in seen:
            seen.add(leak.site)
            yield _leak_finding(one, leak)


def _leak_finding(one: Snapshot, leak: Leak) -> Finding:
    step = "" if leak.per_step is None else f", about {size(leak.per_step)} each step"
    period = "" if not leak.period or leak.period < 1.5 else f", every {leak.period:.0f} steps"
    return snapshot_leak.finding(
        f"{short(leak.site)} keeps {size(leak.bytes)} in {leak.count} allocations{step}{period}",
        f"none of them was given back; they were made in {leak.spread:.0%} of the tenths of a recording of "
        f"{leak.steps} {'repetitions' if leak.per_step is None else 'steps'}, in a straight line"
        f" (r = {leak.linearity:.3f})",
        proof(
            evidence(one, f"first of {leak.count} allocations that stay: {chain(leak.stack)}", seq=leak.seq),
            *(evidence(one, f"next: {size(e.bytes)} at {chain(e.stack)}", seq=e.seq) for e in one.leaks[1:4]),
        ),
        Onset(),
        severity="error" if one.ooms else "warning",
        confidence=leak.confidence,
        culprits=ranks(one),
        numbers=named(leak, "bytes count per_step spread linearity site") | {"per_step": leak.per_step or 0.0},
        next=(f"look at what {short(leak.site)} makes, and who keeps it after the step",),
    )


class Growing(Struct, frozen=True):
    """Thresholds of OOM023: snapshots, bytes of growth in all, and its share of all growth."""

    fewest: int = 3
    least: int = 16 << 20
    share: float = 0.25


@rule("OOM023 snapshots-grow", NEEDS, severity="warning", cause="leak")
def snapshot_grew(run: Run, cfg: Growing) -> Findings:
    """Name the stack that grew most over the snapshots of a device."""
    found = [hit for row in _rows(snapshots(run)) if len(row) >= cfg.fewest and (hit := _grew(row, cfg)) is not None]
    if not found:
        return
    row, stack, rise = max(found, key=lambda hit: hit[2])
    last = row[-1]
    yield snapshot_grew.finding(
        f"what {short(site_of(stack))} holds grew by {size(rise)} over {len(row)} snapshots",
        f"it rose from each snapshot of device {last.device} to the next",
        proof(
            evidence(last, f"{size(rise)} more than in {row[0].source}: {chain(stack)}", value=rise),
            evidence(row[0], state_quote(row[0])),
        ),
        Onset(),
        confidence="high" if len(row) >= 5 else "medium",
        culprits=ranks(last),
        numbers={"bytes": rise, "snapshots": len(row), "site": site_of(stack)},
        next=(f"forensics memory {row[0].source} {last.source}",),
    )


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
