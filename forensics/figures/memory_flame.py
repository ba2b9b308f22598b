"""Who holds the memory, as stacks on each other: at the peak of a snapshot, and of what was never given back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from forensics.analyses.snapshots.per_device import Leak, Share, Snapshot, site_of
from forensics.figure import Block, Flame
from forensics.figures._snapshots import chosen, name_of, unit_of
from forensics.figures.kind import FigureKind, rules_of
from forensics.model import Report, Shape
from forensics.store.run import Run

KINDS = ("parameter", "gradient", "optimizer", "activation", "temporary", "unknown", "leak", "several", "the rest")
_SEVERAL, _REST, _LEAK = KINDS.index("several"), KINDS.index("the rest"), KINDS.index("leak")
#: Blocks of a smaller share of the whole are put together: they are hardly wider than a line.
_NARROW = 0.003
_MOST_DEPTH, _MOST_BLOCKS, _MOST_ROWS = 24, 600, 20
Stacks = list[tuple[tuple[str, ...], float, int]]


def flames(run: Run, report: Report) -> Iterator[Flame]:
    """Give the stacks at the peak of each snapshot, and those of its leak sites."""
    rules = rules_of(report, Shape.OOM)
    for number, snapshot in enumerate(chosen(run, report), 1):
        if any(share.stack for share in snapshot.peak_by_stack):
            yield _peak(snapshot, number, rules)
        if snapshot.leaks:
            yield _leaks(snapshot, number, rules)


def _peak(snapshot: Snapshot, number: int, rules: tuple[str, ...]) -> Flame:
    shares = snapshot.peak_by_stack
    unit, size = unit_of(snapshot.peak_bytes)
    stacks: Stacks = [(s.stack[::-1] or ("no stack",), s.bytes / size, KINDS.index(s.category)) for s in shares]
    total = sum(s.bytes for s in shares)
    roots, least = blocks_of(stacks)
    first = shares[0]
    most = f"most by one stack is {first.bytes / size:,.4g} {unit} at {first.site} ({first.category})"
    return Flame(
        key=f"memory-peak-{number}",
        title=f"Who holds the memory at the peak of {name_of(snapshot)}",
        caption=f"{total / size:,.4g} {unit} in {sum(s.count for s in shares):,} blocks, by stack; {most}.",
        unit=unit,
        total=total / size,
        kinds=KINDS,
        roots=roots,
        head=("site", unit, "share", "blocks", "kind"),
        rows=tuple(_share_row(s, total, size) for s in shares[:_MOST_ROWS]),
        rules=rules,
        note=_note(len(shares), least),
    )


def _leaks(snapshot: Snapshot, number: int, rules: tuple[str, ...]) -> Flame:
    leaks = snapshot.leaks
    unit, size = unit_of(max(leak.bytes for leak in leaks))
    total = sum(leak.bytes for leak in leaks)
    roots, least = blocks_of([(leak.stack[::-1] or ("no stack",), leak.bytes / size, _LEAK) for leak in leaks])
    sites = ", ".join(dict.fromkeys(leak.site for leak in leaks[:3]))
    return Flame(
        key=f"memory-leaks-{number}",
        title=f"What is never given back in {name_of(snapshot)}",
        caption=f"{total / size:,.4g} {unit} pile up over the recording, taken at {sites}.",
        unit=unit,
        total=total / size,
        kinds=KINDS,
        roots=roots,
        head=("site", unit, "share", "blocks", "per step"),
        rows=tuple(_leak_row(leak, total, (unit, size)) for leak in leaks[:_MOST_ROWS]),
        rules=rules,
        note=_note(len(leaks), least),
    )


def _share_row(share: Share, total: int, size: float) -> tuple[str, ...]:
    before = ", before the recording" if share.before else ""
    part = share.bytes / total if total else 0.0
    return share.site, f"{share.bytes / size:,.4g}", f"{part:.1%}", f"{share.count:,}", share.category + before


def _leak_row(leak: Leak, total: int, measure: tuple[str, float]) -> tuple[str, ...]:
    unit, size = measure
    per_step = f"{leak.per_step / size:,.4g} {unit}" if leak.per_step is not None else "not known"
    return leak.site, f"{leak.bytes / size:,.4g}", f"{leak.bytes / (total or 1):.1%}", f"{leak.count:,}", per_step


def _note(stacks: int, least: float) -> str:
    deep = f"of stacks deeper than {_MOST_DEPTH} the middle is left out"
    return f"{stacks:,} stacks; blocks below {least:.1%} of the whole are put together; {deep}"


class _Node(Struct):
    """A frame while stacks are being laid on each other."""

    value: float = 0.0
    kinds: set[int] = field(default_factory=set[int])
    below: dict[str, _Node] = field(default_factory=dict)


def blocks_of(stacks: Stacks) -> tuple[tuple[Block, ...], float]:
    """Lay stacks (outermost frame first) on each other, the widest left; and the share from which blocks are shown."""
    root = _Node()
    for stack, value, kind in stacks:
        node = root
        node.value += value
        for frame in _cut(stack):
            node = node.below.setdefault(frame, _Node())
            node.value += value
            node.kinds.add(kind)
    least = _NARROW
    while _count(root, root.value * least) > _MOST_BLOCKS:
        least *= 2
    return _children(root, root.value * least), least


def _count(node: _Node, least: float) -> int:
    shown = [one for one in node.below.values() if one.value >= least]
    return len(shown) + sum(_count(one, least) for one in shown)


def _cut(stack: tuple[str, ...]) -> Iterable[str]:
    if len(stack) <= _MOST_DEPTH:
        return stack
    return (*stack[: _MOST_DEPTH - 2], "…", site_of(stack[::-1]))


def _children(node: _Node, least: float) -> tuple[Block, ...]:
    ordered = sorted(node.below.items(), key=lambda item: (-item[1].value, item[0]))
    shown = [(label, one) for label, one in ordered if one.value >= least]
    found = [Block(label, one.value, _kind(one), _children(one, least)) for label, one in shown]
    rest = [one for _, one in ordered if one.value < least]
    if rest and (value := sum(one.value for one in rest)) > 0:
        found.append(Block(f"{len(rest)} more", value, _REST))
    return tuple(found)


def _kind(node: _Node) -> int:
    return next(iter(node.kinds)) if len(node.kinds) == 1 else _SEVERAL


FIGURES = FigureKind(36, flames)
