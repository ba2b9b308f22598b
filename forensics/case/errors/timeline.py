"""One time line over all sources: which of two places came first, when that can be known.

In one source the order is that of its lines. Between sources it is that of their clocks, unknown when either has none,
or only one of them has dates: times of day without one are of 1970.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from forensics.case.errors.failures import Failure
from forensics.model import Evidence

#: What is earlier has no date: a file of a training run is younger than 1980.
_DATED_NS = 315_532_800 * 10**9


def before(a: Evidence, b: Evidence) -> bool | None:
    """Tell whether `a` came before `b`; None when it cannot be known or they are at one place."""
    if a.source == b.source:
        here, there = _at(a), _at(b)
        if here is not None and there is not None and here != there:
            return here < there
    if a.t_ns is not None and b.t_ns is not None and a.t_ns != b.t_ns and are_of_one_clock((a.t_ns, b.t_ns)):
        return a.t_ns < b.t_ns
    return None


def are_of_one_clock(times: Collection[int]) -> bool:
    """Tell whether some times all have a date, or none has."""
    return len({t_ns < _DATED_NS for t_ns in times}) <= 1


def is_before(a: Failure, b: Failure) -> bool:
    """Tell whether an error is known to have come before another one."""
    if a.source == b.source:
        return a.at < b.at
    return a.t_ns is not None and b.t_ns is not None and are_of_one_clock((a.t_ns, b.t_ns)) and a.t_ns < b.t_ns


def _at(evidence: Evidence) -> int | None:
    where = evidence.locator
    return next((v for v in (where.line, where.record, where.byte) if v is not None), None)


def in_order(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """Sort errors by time where all have one, else by source and place; the strongest first at one place."""
    rows = list(failures)
    times = [f.t_ns for f in rows if f.t_ns is not None]
    if len(times) == len(rows) and are_of_one_clock(times):
        rows.sort(key=lambda f: (f.t_ns or 0, f.source, f.at, -f.weight))
    else:
        rows.sort(key=lambda f: (f.source, f.at, -f.weight))
    return tuple(rows)
