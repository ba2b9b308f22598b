"""Who holds the memory, as stacks on each other: at the peak of a snapshot, and of what was never given back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

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
    shares, measure = snapshot.peak_by_stack, unit_of(snapshot.peak_bytes)
    first, before = shares[0], ", before the recording"
    most = f"{first.bytes / measure[1]:,.4g} {measure[0]} at {first.site} ({first.category})"
    held = [(s, KINDS.index(s.category), s.category + before * s.before) for s in shares]
    return _flame(
        held,
        measure,
        "kind",
        key=f"memory-peak-{number}",
        title=f"Who holds the memory at the peak of {name_of(snapshot)}",
        caption=f"in {sum(s.count for s in shares):,} blocks, by stack; most by one stack is {most}.",
        rules=rules,
    )


def _leaks(snapshot: Snapshot, number: int, rules: tuple[str, ...]) -> Flame:
    leaks = snapshot.leaks
    unit, size = unit_of(max(leak.bytes for leak in leaks))
    sites = ", ".join(dict.fromkeys(leak.site for leak in leaks[:3]))
    each = (f"{one.per_step / size:,.4g} {unit}" if one.per_step is not None else "not known" for one in leaks)
    return _flame(
        [(leak, _LEAK, per_step) for leak, per_step in zip(leaks, each, strict=True)],
        (unit, size),
        "per step",
        key=f"memory-leaks-{number}",
        title=f"What is never given back in {name_of(snapshot)}",
        caption=f"pile up over the recording, taken at {sites}.",
        rules=rules,
    )


def _flame(
    held: Sequence[tuple[Share | Leak, int, str]],
    measure: tuple[str, float],
    last: str,
    *,
    caption: str,
    **words: Any,  # noqa: ANN401 - other fields of the figure
) -> Flame:
    """Lay what is held on each other: each with its kind and the word for the column `last` of the table."""
    unit, size = measure
    total = sum(one.bytes for one, _, _ in held)
    roots, least = blocks_of([(one.stack[::-1] or ("no stack",), one.bytes / size, kind) for one, kind, _ in held])
    rows = (
        (one.site, f"{one.bytes / size:,.4g}", f"{one.bytes / (total or 1):.1%}", f"{one.count:,}", word)
        for one, _, word in held[:_MOST_ROWS]
    )
    return Flame(
        **words,
        caption=f"{total / size:,.4g} {unit} {caption}",
        unit=unit,
        total=total / size,
        kinds=KINDS,
        roots=roots,
        head=("site", unit, "share", "blocks", last),
        rows=tuple(rows),
        note=_note(len(held), least),
    )


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
