"""Leak sites of one recording: stacks whose allocations were never given back, and came again and again.

Allocated and not freed proves nothing: parameters, optimizer state and fresh gradients are so too. They are born in
one burst; a leak is born all over the recording. So a stack is named only when its survivors are spread over it, add
up in a straight line, begin in its first third (a bounded cache keeps only recent ones), and the recording holds steps
enough. Order: bytes times spread times linearity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import correlation, median

import polars as pl

from forensics.model import Confidence
from forensics.signals._snapshot_events import Accounts
from forensics.signals._snapshot_stacks import Known, Phase, stack_of
from forensics.signals._snapshot_values import Leak, Stack

_TENTHS = 10


@dataclass(frozen=True, slots=True)
class LeakBounds:
    """When survivors are a leak. Spread and linearity as they separate made leaks from made and real clean recordings.

    `survivors` and `steps` are the fewest with which a line is more than two points.
    """

    spread: float = 0.3
    linearity: float = 0.9
    survivors: int = 3
    steps: int = 3
    first: float = 1 / 3


@dataclass(frozen=True, slots=True)
class Steps:
    """Where the steps of a recording begin, as seqs of events, and whether the program itself said so."""

    begins: tuple[int, ...]
    told: bool

    @property
    def count(self) -> int:
        """How many steps."""
        return len(self.begins)

    def of(self, seq: int) -> int:
        """The step that an event belongs to, 0-based; -1 before the first."""
        low, high = 0, len(self.begins)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.begins[middle] <= seq else (low, middle)
        return low - 1


def steps_of(books: Accounts, annotations: pl.DataFrame, known: Mapping[int, Known]) -> Steps:
    """Find the steps: by the program's annotations, else by the rounds of forward, backward and optimizer stacks."""
    told = annotations.filter(
        (pl.col("stage") == "START")
        & (pl.col("name").str.contains("Optimizer.step", literal=True) | pl.col("name").str.starts_with("ProfilerStep"))
        & pl.col("t_ns").is_not_null()
    )
    kinds = told["name"].str.contains("Optimizer.step", literal=True)
    marks = told.filter(kinds) if kinds.any() else told
    times = books.events.filter(pl.col("t_ns").is_not_null()).select("seq", "t_ns")
    marks = marks.filter(pl.col("t_ns") >= times["t_ns"][0]) if times.height else marks.clear()
    if marks.height:
        at = times["t_ns"].search_sorted(marks["t_ns"].sort(), side="left").clip(upper_bound=times.height - 1)
        return Steps(tuple(times["seq"].gather(at).to_list()), told=True)
    return Steps(_rounds(books, known), told=False)


def _rounds(books: Accounts, known: Mapping[int, Known]) -> tuple[int, ...]:
    """Seqs at which a whole round begins: forward, then an optimizer's stack, or a backward one where none is of it."""
    phases = {stack: one.phase.value for stack, one in known.items()}
    if not phases or books.events.height == 0:
        return ()
    column = books.events.select(
        "seq", phase=pl.col("stack").replace_strict(phases, default=Phase.OTHER.value, return_dtype=pl.String)
    ).filter(pl.col("phase") != Phase.OTHER.value)
    changes = column.filter((pl.col("phase") != pl.col("phase").shift(1)).fill_null(value=True))
    seen = set(changes["phase"])
    ends = Phase.OPTIMIZER.value if changes.filter(pl.col("phase") == Phase.OPTIMIZER.value).height > 1 else None
    ends = ends or (Phase.BACKWARD.value if Phase.BACKWARD.value in seen else None)
    if ends is None or Phase.FORWARD.value not in seen:
        return ()
    begins, begin = list[int](), None
    for seq, phase in changes.iter_rows():
        if phase == ends and begin is not None:
            begins.append(begin)
            begin = None
        elif phase == Phase.FORWARD.value and begin is None:
            begin = seq
    return tuple(begins)


def leaks_of(
    books: Accounts, known: Mapping[int, Known], steps: Steps, bounds: LeakBounds | None = None
) -> tuple[Leak, ...]:
    """Name the stacks that leak, the worst first; nothing when the recording has too few steps."""
    bounds = bounds or LeakBounds()
    if steps.count < bounds.steps or books.events.height == 0:
        return ()
    first, last = int(books.events["seq"][0]), int(books.events["seq"][-1])
    live = books.lives.filter(pl.col("end").is_null()).sort("seq").select("seq", "size", "stack")
    groups: dict[Stack, list[tuple[int, int]]] = {}
    for seq, size, stack in live.iter_rows():
        groups.setdefault(stack_of(known, stack).frames, []).append((seq, size))
    found = [
        (leak.bytes * leak.spread * leak.linearity, leak)
        for stack, births in groups.items()
        if len(births) >= bounds.survivors and (leak := _judged(stack, births, (first, last), steps, bounds))
    ]
    return tuple(leak for _, leak in sorted(found, key=lambda pair: -pair[0]))


def _judged(
    stack: Stack, births: Sequence[tuple[int, int]], span: tuple[int, int], steps: Steps, bounds: LeakBounds
) -> Leak | None:
    first, last = span
    length = max(last - first, 1)
    places = [(seq - first) / length for seq, _ in births]
    held, total = list[float](), 0.0
    for _, size in births:
        total += size
        held.append(total)
    spread = len({min(int(place * _TENTHS), _TENTHS - 1) for place in places}) / _TENTHS
    linearity = correlation(places, held) if places[-1] > places[0] and held[-1] > held[0] else 0.0
    if spread < bounds.spread or linearity <= bounds.linearity or places[0] > bounds.first:
        return None
    at = sorted({steps.of(seq) for seq, _ in births})
    if len(at) < bounds.survivors:
        return None
    sure = steps.told and steps.count >= 2 * bounds.steps and spread >= 2 * bounds.spread
    return Leak(
        stack=stack,
        bytes=int(total),
        count=len(births),
        per_step=total / steps.count,
        period=float(median(b - a for a, b in pairwise(at))),
        steps=steps.count,
        spread=spread,
        linearity=linearity,
        confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
        seq=births[0][0],
    )
