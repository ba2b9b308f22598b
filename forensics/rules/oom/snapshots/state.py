"""The state that a snapshot of memory shows: a request that failed, free pieces, private pools, and gaps in it."""

from __future__ import annotations

from forensics.analyses.snapshots.per_device import Snapshot, site_of, snapshots
from forensics.rules.kit import Findings, Onset, Run, Struct, proof, remark, rule
from forensics.rules.oom._memory import size
from forensics.rules.oom.snapshots._shared import NEEDS, chain, evidence, ranks, short, state_quote
from forensics.values import named


class AtTheEnd(Struct, frozen=True):
    """Thresholds of OOM021: events behind the last `oom` event above which the program went on; a step has more."""

    after: int = 200
    holders: int = 3


@rule("OOM021 snapshot-oom-event", NEEDS, severity="error", cause="gpu_out_of_memory")
def snapshot_oom(run: Run, cfg: AtTheEnd) -> Findings:
    """Report the earliest fatal out-of-memory event among the snapshots."""
    found = [(one, one.oom) for one in snapshots(run) if one.oom is not None and one.oom.events_after <= cfg.after]
    if not found:
        return
    one, oom = min(found, key=lambda pair: (pair[1].t_ns is None, pair[1].t_ns or 0))
    free = "" if oom.free_bytes is None else f" with {size(oom.free_bytes)} free on the device"
    where = f" at {short(site_of(oom.stack))}" if oom.stack else ""
    place = f"the last but {oom.events_after} of its events" if oom.events_after else "its last event"
    in_pieces = _would_fit(one)
    free_bytes, largest = size(one.unreleasable_bytes), size(one.largest_piece_bytes)
    pieces = f"; {free_bytes} free in pieces of at most {largest}" if in_pieces else ""
    holders = one.live_by_stack[: cfg.holders]
    yield snapshot_oom.finding(
        f"device {one.device} ran out of memory: {size(oom.asked_bytes)} asked for{free}{where}",
        f"the allocator recorded it, {place}; {state_quote(one)}{pieces}",
        proof(
            evidence(
                one,
                f"out of memory: {size(oom.asked_bytes)} asked for by {chain(oom.stack)}",
                seq=oom.seq,
                value=oom.asked_bytes,
            ),
            *(evidence(one, f"{size(h.bytes)} held by {chain(h.stack)} ({h.category})") for h in holders),
        ),
        Onset(t_ns=oom.t_ns, rank=one.rank),
        confidence="high" if one.trusted else "medium",
        cause="fragmentation" if in_pieces else "gpu_out_of_memory",
        culprits=ranks(one),
        numbers={
            "asked_bytes": oom.asked_bytes,
            "free_bytes": -1 if oom.free_bytes is None else oom.free_bytes,
            **named(one, "allocated_bytes reserved_bytes"),
            "devices": len(found),
        },
        next=("forensics memory on the snapshot shows who holds what at the peak",),
    )


class Pieces(Struct, frozen=True):
    """Thresholds of OOM022: unreleasable over reserved bytes, and the least of them to speak of.

    A tenth is where expandable segments begin to be worth advising; a recorded clean loop has less.
    """

    share: float = 0.10
    least: int = 64 << 20


@rule("OOM022 snapshot-fragmentation", NEEDS, cause="fragmentation")
def snapshot_fragmentation(run: Run, cfg: Pieces) -> Findings:
    """Report the most fragmented device of the run's snapshots."""
    found = [one for one in snapshots(run) if one.quality != "inconsistent" and one.fragmentation > cfg.share]
    found = [one for one in found if one.unreleasable_bytes >= cfg.least]
    if not found:
        return
    one = max(found, key=lambda one: (_would_fit(one), one.fragmentation))
    fatal = _would_fit(one)
    asked = "" if one.oom is None else f"; {size(one.oom.asked_bytes)} were asked for when memory ran out"
    yield snapshot_fragmentation.finding(
        f"{size(one.unreleasable_bytes)} ({one.fragmentation:.0%}) of reserved memory are free in pieces that "
        "cannot be given back",
        f"the largest piece is {size(one.largest_piece_bytes)}; {state_quote(one)}{asked}",
        proof(evidence(one, state_quote(one), value=one.fragmentation)),
        Onset(),
        severity="warning" if fatal else "info",
        confidence="high" if fatal else "medium",
        culprits=ranks(one),
        causal="root" if fatal else "context",
        numbers=named(one, "unreleasable_bytes largest_piece_bytes reserved_bytes fragmentation scatter"),
    )


def _would_fit(one: Snapshot) -> bool:
    """Whether an out-of-memory request was smaller than the pieces together, and larger than each."""
    if (oom := one.oom) is None:
        return False
    return one.largest_piece_bytes < oom.asked_bytes <= one.unreleasable_bytes + (oom.free_bytes or 0)


class Private(Struct, frozen=True):
    """Thresholds of OOM025: free bytes of private pools over all reserved bytes."""

    share: float = 0.15


@remark("OOM025 private-pools-hold", NEEDS, confidence="medium", cause="private_pools")
def snapshot_pools(run: Run, cfg: Private) -> Findings:
    """Report the device whose private pools keep most."""
    found = [one for one in snapshots(run) if _idle(one) > cfg.share * max(one.reserved_bytes, 1)]
    if not found:
        return
    one = max(found, key=_idle)
    private, idle = [pool for pool in one.pools if pool.pool != (0, 0)], _idle(one)
    yield snapshot_pools.finding(
        f"{len(private)} private pools keep {size(idle)} of {size(one.reserved_bytes)} without allocations in it",
        "memory of a private pool serves no other allocation, and emptying the cache does not free it",
        proof(evidence(one, state_quote(one), value=idle)),
        Onset(),
        culprits=ranks(one),
        numbers={"pools": len(private), "idle_bytes": idle, "reserved_bytes": one.reserved_bytes},
    )


def _idle(one: Snapshot) -> int:
    return sum(pool.reserved_bytes - pool.allocated_bytes for pool in one.pools if pool.pool != (0, 0))


class Hidden(Struct, frozen=True):
    """Thresholds of OOM024: share of the peak that is older than the recording."""

    older: float = 0.5


@remark("OOM024 snapshot-says-little", NEEDS, confidence="high", cause="snapshot_quality")
def snapshot_quality(run: Run, cfg: Hidden) -> Findings:
    """Report each kind of gap once, with the first snapshot that has it and how many do."""
    found: dict[str, list[Snapshot]] = {}
    for one in snapshots(run):
        if kind := _kind(one, cfg):
            found.setdefault(kind, []).append(one)
    for kind, (one, *others) in found.items():
        many = f" (and {len(others)} more)" if others else ""
        yield snapshot_quality.finding(
            f"the memory snapshot of device {one.device} {kind}{many}",
            "; ".join(one.notes) or state_quote(one),
            proof(evidence(one, state_quote(one))),
            Onset(),
            culprits=ranks(one),
            numbers={"snapshots": 1 + len(others), "events": one.events},
        )


def _kind(one: Snapshot, cfg: Hidden) -> str:
    if one.quality == "inconsistent":
        return "contradicts itself"
    if one.quality == "state only":
        return "holds no events"
    if one.events and not one.stacked_events:
        return "has no stacks"
    before = one.start_allocated_bytes
    return "begins late: most of the memory is older than the recording" if before > cfg.older * one.peak_bytes else ""
