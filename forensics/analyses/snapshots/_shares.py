"""Who holds the memory at the peak and at the end, by stack, with a category where stacks and lifetimes tell one."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from forensics.analyses.snapshots._events import Accounts, by_address
from forensics.analyses.snapshots._stacks import Known, Phase, stack_of
from forensics.analyses.snapshots._values import Share, Stack
from forensics.knowledge.vocabulary import stands_for
from forensics.model import Confidence

_SHARES = 5_000
#: A stack stays when more than this share of what it allocated is never given back.
_MOST = 0.5


def peak_of(books: Accounts) -> tuple[int | None, int]:
    """The event at which most is allocated and how much that is; no event when it is the start."""
    if books.events.height == 0:
        return None, books.allocated
    at = books.events["allocated"].arg_max()
    top = int(books.events["allocated"][at]) if at is not None else 0
    if at is None or top <= books.start_allocated:
        return None, books.start_allocated
    return int(books.events["seq"][at]), top


def shares_at(books: Accounts, known: Mapping[int, Known], seq: int | None) -> tuple[Share, ...]:
    """Allocated bytes after event `seq` (before the first for None), by stack, the largest first."""
    seq = -1 if seq is None else seq
    alive = books.lives.filter((pl.col("seq") <= seq) & (pl.col("end").is_null() | (pl.col("end") > seq)))
    ended = alive.group_by("stack").agg(
        bytes=pl.col("size").sum(),
        count=pl.len(),
        kept=pl.col("end").is_null().mean(),
        frees=pl.col("end_stack").mode(),
    )
    rows = [
        (stack_of(known, stack), size, count, False, _category(known, stack, kept, frees))
        for stack, size, count, kept, frees in ended.iter_rows()
    ]
    ghosts = books.ghosts.group_by("stack").agg(bytes=pl.col("size").sum(), count=pl.len())
    rows += [
        (stack_of(known, stack), size, count, True, _category(known, stack, 1.0, None))
        for stack, size, count in ghosts.iter_rows()
    ]
    early = books.freed_before.filter(pl.col("seq") > seq)
    if early.height:
        rows.append((stack_of(known, None), int(early["size"].sum()), early.height, True, ("unknown", Confidence.LOW)))
    return _merged(rows)


def live_shares(books: Accounts, known: Mapping[int, Known]) -> tuple[Share, ...]:
    """Allocated bytes at the end, by stack, the largest first."""
    ghosts = by_address(books.ghosts.select("addr", ghost=pl.lit(value=True)))
    seen = books.blocks.join(ghosts, on="addr", how="left")
    rows = seen.group_by("stack", pl.col("ghost").fill_null(value=False)).agg(
        bytes=pl.col("size").sum(), count=pl.len()
    )
    return _merged(
        [
            (stack_of(known, stack), size, count, ghost, _category(known, stack, 1.0, None))
            for stack, ghost, size, count in rows.iter_rows()
        ]
    )


def _merged(rows: list[tuple[Known, int, int, bool, tuple[str, Confidence]]]) -> tuple[Share, ...]:
    """Add up rows whose stacks read the same."""
    sums: dict[tuple[Stack, bool, str], tuple[int, int, Confidence]] = {}
    for one, size, count, before, (category, confidence) in rows:
        key = one.frames, before, category
        size_before, count_before, sure = sums.get(key, (0, 0, confidence))
        least = min(sure, confidence, key=lambda c: c.rank)
        sums[key] = size + size_before, count + count_before, least
    found = [
        Share(stack, size, count, category, sure, before)
        for (stack, before, category), (size, count, sure) in sums.items()
    ]
    found.sort(key=lambda share: (-share.bytes, share.stack, share.before))
    return tuple(found[:_SHARES])


def _category(
    known: Mapping[int, Known], stack: int | None, kept: float, frees: list[int | None] | None
) -> tuple[str, Confidence]:
    """Tell parameter, gradient, optimizer, activation, temporary apart; `kept` is the share that is never freed."""
    one = stack_of(known, stack)
    names = [frame.rsplit(" ", 1)[-1].lower() for frame in one.frames]
    ends = {stack_of(known, free).phase for free in frees or ()}
    if one.phase is Phase.OPTIMIZER:
        return ("optimizer", Confidence.HIGH) if kept > _MOST else ("temporary", Confidence.MEDIUM)
    if one.phase is Phase.BACKWARD:
        return _of_backward(names, ends, stays=kept > _MOST)
    if one.phase is Phase.FORWARD:
        return _of_forward(names, ends, stays=kept > _MOST)
    return "unknown", Confidence.LOW


def is_of_parameters(stack: Stack) -> bool:
    """Whether a stack runs through the making, the loading or the moving of parameters."""
    return _names_parameters([frame.rsplit(" ", 1)[-1].lower() for frame in stack])


def _names_parameters(names: list[str]) -> bool:
    return any(stands_for("parameter_name", name) for name in names)


def _of_backward(names: list[str], ends: set[Phase], *, stays: bool) -> tuple[str, Confidence]:
    if any(stands_for("gradient_name", name) for name in names):
        return "gradient", Confidence.HIGH
    return "gradient" if stays or Phase.OPTIMIZER in ends else "temporary", Confidence.MEDIUM


def _of_forward(names: list[str], ends: set[Phase], *, stays: bool) -> tuple[str, Confidence]:
    if stays and _names_parameters(names):
        return "parameter", Confidence.MEDIUM
    if Phase.BACKWARD in ends:
        return "activation", Confidence.HIGH
    if any(name.startswith("forward") for name in names):
        return "activation", Confidence.MEDIUM if stays else Confidence.LOW
    return "unknown", Confidence.LOW
