"""Two snapshots of one run: what grew between them, by stack."""

from __future__ import annotations

from forensics.analyses.snapshots._values import Growth, Snapshot, Stack


def grown(base: Snapshot, cand: Snapshot, *, steps: int | None = None) -> tuple[Growth, ...]:
    """What each stack holds live in `cand` beyond `base`, the largest first; negative growth is left out.

    `steps` is the number of steps between the two, when it is known.
    """
    before, after = _held(base), _held(cand)
    found = [
        Growth(stack, size - before.get(stack, (0, 0))[0], count - before.get(stack, (0, 0))[1])
        for stack, (size, count) in after.items()
        if size > before.get(stack, (0, 0))[0]
    ]
    found.sort(key=lambda g: (-g.bytes, g.stack))
    if steps:
        found = [Growth(g.stack, g.bytes, g.count, g.bytes / steps) for g in found]
    return tuple(found)


def _held(snapshot: Snapshot) -> dict[Stack, tuple[int, int]]:
    held: dict[Stack, tuple[int, int]] = {}
    for share in snapshot.live_by_stack:
        size, count = held.get(share.stack, (0, 0))
        held[share.stack] = size + share.bytes, count + share.count
    return held
