"""What filled the device when memory ran out, and what was asked for, by the numbers of the message."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.memory.oom_messages import OomMessage, oom_messages
from forensics.figure import Bar, Bars, Mark
from forensics.figures._snapshots import unit_of
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run

_PARTS = ("allocated", "reserved but unallocated", "other memory", "asked for")
_MOST_MESSAGES = 8


def at_oom(run: Run, report: Report) -> Iterator[Bars]:
    """Give two bars for each message that says the size of its device: what is held, and that with the request."""
    told = [m for m in oom_messages(run) if m.sizes.capacity and m.sizes.tried and m.sizes.free is not None]
    culprits = report.verdict.culprits
    shown = sorted(told, key=lambda m: (m.rank not in culprits, bool(m.survived)))[:_MOST_MESSAGES]
    if not shown:
        return
    capacity = max(m.sizes.capacity or 0 for m in shown)
    unit, size = unit_of(capacity)
    yield Bars(
        key="memory-at-oom",
        title="The device when memory ran out",
        caption=" ".join(_told(m, unit, size) for m in shown),
        unit=unit,
        parts=_PARTS,
        bars=tuple(bar for m in shown for bar in _bars(m, size)),
        rules=rules_of(report, Shape.OOM),
        note=f"{len(shown)} of {len(told)} messages" if len(shown) < len(told) else "",
        limit=Mark(capacity / size, f"size {capacity / size:.4g} {unit}", "limit"),
    )


def _bars(message: OomMessage, size: float) -> tuple[Bar, Bar]:
    sizes = message.sizes
    allocated, unallocated = sizes.allocated or 0, sizes.unallocated or 0
    other = max(0, (sizes.capacity or 0) - (sizes.free or 0) - allocated - unallocated)
    who = f"rank {message.rank}" if message.rank is not None else "device"
    held = tuple(part / size for part in (allocated, unallocated, other))
    return Bar(f"{who} holds", (*held, 0.0)), Bar("and asks for", (*held, (sizes.tried or 0) / size))


def _told(message: OomMessage, unit: str, size: float) -> str:
    sizes = message.sizes
    who = f"Rank {message.rank}" if message.rank is not None else "A process"
    asked, capacity, free = ((part or 0) / size for part in (sizes.tried, sizes.capacity, sizes.free))
    return f"{who} asks for {asked:.4g} {unit} of a device of {capacity:.4g} {unit} with {free:.4g} {unit} free."


FIGURES = FigureKind(31, at_oom, frozenset((Shape.OOM,)))
