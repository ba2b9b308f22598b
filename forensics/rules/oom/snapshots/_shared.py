"""What the rules on memory snapshots share: their tables, evidence from a snapshot, and readable sites."""

from __future__ import annotations

from forensics.analyses.snapshots.per_device import Snapshot, Stack
from forensics.model import Evidence, Locator
from forensics.rules.oom._memory import size

#: Tables that `analyses.snapshots` is made of.
NEEDS = "allocs segments blocks stacks frames annotations facts sources"


def evidence(one: Snapshot, quote: str, *, seq: int | None = None, value: float | None = None) -> Evidence:
    """Show an event of a snapshot, or its state at the end where no event is named."""
    return Evidence(
        source=one.source,
        locator=Locator(path="segments") if seq is None else Locator(record=seq),
        quote=quote,
        rank=one.rank,
        t_ns=one.end_t_ns,
        name="memory_snapshot",
        value=value,
    )


def state_quote(one: Snapshot) -> str:
    """Say what a device holds at the end."""
    return f"device {one.device}: {size(one.allocated_bytes)} allocated of {size(one.reserved_bytes)} reserved"


def short(site: str) -> str:
    """Write a frame with the last two parts of its path."""
    place, _, function = site.partition(" ")
    return " ".join(filter(None, ("/".join(place.split("/")[-2:]), function)))


def chain(stack: Stack, frames: int = 3) -> str:
    """Write the innermost frames of a stack, innermost first."""
    return " < ".join(short(frame) for frame in stack[:frames]) or "code without a stack"


def ranks(one: Snapshot) -> tuple[int, ...]:
    """Give the rank of a snapshot, where it is known."""
    return () if one.rank is None else (one.rank,)
