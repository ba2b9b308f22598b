"""The worker whose non-zero exit began a failure that nothing else explains: no error precedes it.

An exit code of 1 is that of any uncaught error, so that a complaint of whatever rank before it explains it better,
unless the worker's own output was kept and holds none. A code of the program's own choice is explained by nothing but
an error, a time-out, or a complaint of that very rank.
"""

from __future__ import annotations

import polars as pl

from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight
from forensics.case.errors.launchers import GroupEnd, last_end
from forensics.knowledge.signals import signal_of
from forensics.store.run import Run, derived


@derived
def unexplained_exit(run: Run) -> GroupEnd | None:
    """Give the end of the worker group that ended the run, where no judged error may explain it."""
    end = last_end(run)
    if end is None or signal_of(end.code) is not None:
        return None
    return None if any(_explains(run, failure, end) for failure in standing(run)) else end


def is_disputed(run: Run, end: GroupEnd) -> bool:
    """Whether something reported after the exit may explain it: a stop, or an exception where the code was 1."""
    own = {Weight.STOP, Weight.OWN} if end.code == 1 else {Weight.STOP}
    return any(failure.weight in own for failure in standing(run))


def _explains(run: Run, failure: Failure, end: GroupEnd) -> bool:
    if failure.weight == Weight.WRAPPER or end.before(failure.source, failure.at, failure.t_ns):
        return False
    # a worker that printed to files of its own would have complained there
    if failure.weight == Weight.CLOSED and (not end.is_plain or end.rank in _spoken(run)):
        return failure.rank is None or failure.rank == end.rank
    return True


@derived
def _spoken(run: Run) -> frozenset[int]:
    """Give the ranks for which sources speak as a whole."""
    known = run.scan("sources").filter(pl.col("rank").is_not_null()).select(pl.col("rank").unique()).collect()
    return frozenset(known["rank"].to_list())
