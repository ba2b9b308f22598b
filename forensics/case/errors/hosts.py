"""Whether a line of a host's log, as its kernel writes it, is of the time in which the run trained."""

from __future__ import annotations

from forensics.case.last_steps import trained_ns
from forensics.store.run import Run

_HOUR_NS = 3_600_000_000_000
#: One of two clocks may tell UTC and the other that of a zone, at most 14 h from it (tz database, Pacific/Kiritimati).
_ZONE_NS = 14 * _HOUR_NS
#: A log without years is given that of its file, which may be another one: times so far apart prove nothing.
_YEAR_NS = 180 * 24 * _HOUR_NS


def days_apart(run: Run, t_ns: int | None) -> bool:
    """Whether a time, in ns, is so far before the first training record, or behind the last, that it is of another job.

    False where either has no time.
    """
    trained = trained_ns(run)
    if t_ns is None or trained is None:
        return False
    return _ZONE_NS < max(trained[0] - t_ns, t_ns - trained[1]) < _YEAR_NS
