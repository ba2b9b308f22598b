"""Leak sites of one recording: stacks whose allocations were never given back, and came again and again.

Allocated and not freed proves nothing: parameters, optimizer state and fresh gradients are so too. They are born in
one burst; a leak is born all over the recording, and goes on to its end. So a stack is named only when its survivors
are spread over it, add up in a straight line, go on, and the recording holds steps enough. A cache with a bound and
garbage that is collected now and then keep only what is young: where a stack frees some of its allocations, only those
survivors count that are older than the freed ones became. What one line makes by way of many callers is judged
together. Order: bytes times spread times linearity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import inf

import polars as pl
from msgspec import Struct

from forensics.analyses.snapshots._events import Accounts
from forensics.analyses.snapshots._shares import is_of_parameters
from forensics.analyses.snapshots._stacks import Known, stack_of
from forensics.analyses.snapshots._steps import Steps
from forensics.analyses.snapshots._values import Leak, Stack, site_of
from forensics.model import Confidence
from forensics.stats.spread import median_of

_TENTHS = 10
#: When survivors are a leak: thresholds that separate made leaks from made and real clean recordings.
_SPREAD, _LINEARITY = 0.3, 0.9
#: So many survivors, and steps, are the fewest with which a line is more than two points.
_FEWEST = 3
_OLDER = 2.0  # times the longest lifetime of what was freed: so old a survivor must be
#: The time since the last survivor was born, as a share of the recording, or in typical distances of two of them.
_SILENT, _DISTANCES = 0.15, 3.0


class _Made(Struct, frozen=True):
    """Allocations of one stack or one line: survivors as (seq, size) in order, and the lifetimes of freed ones."""

    stack: Stack
    births: tuple[tuple[int, int], ...]
    lifetimes: tuple[int, ...]


class _Span(Struct, frozen=True):
    """The first and the last event of a recording, and its steps."""

    first: int
    last: int
    steps: Steps


def leaks_of(books: Accounts, known: Mapping[int, Known], steps: Steps) -> tuple[Leak, ...]:
    """Name the stacks that leak, the worst first; nothing when the recording has too few steps."""
    if steps.count < _FEWEST or books.events.height == 0:
        return ()
    span = _Span(int(books.events["seq"][0]), int(books.events["seq"][-1]), steps)
    made = _made(books, known)
    if not steps.whole:  # loading repeats itself, too
        made = [one for one in made if not is_of_parameters(one.stack)]
    found = [leak for one in made if (leak := _judged(one, span))]
    named = {leak.site for leak in found}
    found += [leak for one in _by_line(made, named) if (leak := _judged(one, span))]
    return tuple(sorted(found, key=lambda leak: -leak.bytes * leak.spread * leak.linearity))


def _made(books: Accounts, known: Mapping[int, Known]) -> list[_Made]:
    """Group the recorded allocations of stacks with survivors by what their stacks read."""
    kept = books.lives.filter(pl.col("end").is_null()).select("stack").unique()
    rows = books.lives.join(kept, on="stack", how="semi", nulls_equal=True).sort("seq")
    births: dict[Stack, list[tuple[int, int]]] = {}
    lifetimes: dict[Stack, list[int]] = {}
    for seq, size, stack, end in rows.select("seq", "size", "stack", "end").iter_rows():
        frames = stack_of(known, stack).frames
        if end is None:
            births.setdefault(frames, []).append((seq, size))
        else:
            lifetimes.setdefault(frames, []).append(end - seq)
    return [_Made(stack, tuple(row), tuple(lifetimes.get(stack, ()))) for stack, row in births.items()]


def _by_line(made: Sequence[_Made], named: set[str]) -> list[_Made]:
    """Put together what the same line made by way of several callers, where none of them was named alone."""
    lines: dict[str, list[_Made]] = {}
    for one in made:
        if one.stack and (site := site_of(one.stack)) not in named:
            lines.setdefault(site, []).append(one)
    return [
        _Made(
            max(row, key=lambda one: sum(size for _, size in one.births)).stack,
            tuple(sorted(birth for one in row for birth in one.births)),
            tuple(age for one in row for age in one.lifetimes),
        )
        for row in lines.values()
        if len(row) > 1
    ]


def _old(one: _Made, last: int) -> tuple[tuple[int, int], ...]:
    """Survivors that are older than any allocation that the same stack freed."""
    if not one.lifetimes:
        return one.births
    oldest = max(one.lifetimes)
    return tuple(birth for birth in one.births if last - birth[0] > _OLDER * oldest)


def _goes_on(one: _Made, span: _Span) -> bool:
    """Whether survivors are born to the end of the recording; a store that was filled once is none that leaks."""
    begins = [seq for (seq, _), (before, _) in pairwise(one.births) if span.steps.of(seq) != span.steps.of(before)]
    apart = median_of([b - a for a, b in pairwise(begins)]) if len(begins) > 1 else inf
    return span.last - one.births[-1][0] <= max(_SILENT * (span.last - span.first), _DISTANCES * apart)


def _judged(one: _Made, span: _Span) -> Leak | None:
    births = _old(one, span.last)
    if len(births) < _FEWEST or not _goes_on(one, span):
        return None
    from statistics import correlation  # noqa: PLC0415 - few runs ask for it, and Python's module takes time to load

    length = max(span.last - span.first, 1)
    places = [(seq - span.first) / length for seq, _ in births]
    held = list(accumulate(float(size) for _, size in births))
    total = held[-1]
    spread = len({min(int(place * _TENTHS), _TENTHS - 1) for place in places}) / _TENTHS
    linearity = correlation(places, held) if places[-1] > places[0] and held[-1] > held[0] else 0.0
    if spread < _SPREAD or linearity <= _LINEARITY:
        return None
    steps = span.steps
    at = sorted({steps.of(seq) for seq, _ in births})
    if len(at) < _FEWEST:
        return None
    sure = steps.told and steps.count >= 2 * _FEWEST and spread >= 2 * _SPREAD
    return Leak(
        stack=one.stack,
        bytes=int(total),
        count=len(births),
        per_step=total / steps.count if steps.whole else None,
        period=median_of([b - a for a, b in pairwise(at)]) if steps.whole else None,
        steps=steps.count,
        spread=spread,
        linearity=linearity,
        confidence=Confidence.HIGH if sure else Confidence.MEDIUM if steps.whole else Confidence.LOW,
        seq=births[0][0],
    )
