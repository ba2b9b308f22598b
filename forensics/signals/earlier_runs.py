"""Where the last run of a file begins, when a file holds several that each counted from the start.

Steps that start again may be the next epoch of the same run, too. A new run begins at a loss like that of the run
before it when that one began; an epoch begins where the last one ended, and is about as long.
"""

from __future__ import annotations

from collections.abc import Mapping

from forensics.signals.attempts import Boundary, Life, boundaries, lives, rows_of
from forensics.signals.endings import ending_of
from forensics.signals.failures import standing
from forensics.store.run import Run

#: What goes on for so many times the steps of what came before is no next epoch of it.
_LONGER = 1.5


def last_run_begins(run: Run) -> Mapping[str, int]:
    """Give the line of the first training record of the last run of each file that holds several.

    Only where that run has an end (a success marker or a failure) or went further than the one before it did.
    """
    return run.derived(_last_run_begins)


def _last_run_begins(run: Run) -> dict[str, int]:
    found: dict[str, int] = {}
    for boundary in boundaries(run):
        source, line = boundary.after.source, boundary.after.line_first
        scratch = boundary.kind == "scratch" and boundary.before.source == source
        if scratch and line is not None and _is_new(run, boundary) and _counts(run, boundary, line):
            found[source] = max(line, found.get(source, 0))
    return found


def _is_new(run: Run, boundary: Boundary) -> bool:
    """Whether the loss begins where the run before it began, or it goes on for much longer and ends lower."""
    before, after = _losses(run, boundary.before), _losses(run, boundary.after)
    if not before or not after:
        return True
    if boundary.after.last > _LONGER * boundary.before.last and after[-1] < before[-1]:
        return True
    return abs(after[0] - before[0]) < abs(after[0] - before[-1])


def _losses(run: Run, life: Life) -> list[float]:
    rows = rows_of(run, life, "loss")
    return rows.filter(rows["raw_name"] == life.raw_name)["value"].to_list()


def _counts(run: Run, boundary: Boundary, line: int) -> bool:
    source = boundary.after.source
    own = [life for life in lives(run) if life.source == source and (life.line_first or 0) >= line]
    if max(life.last for life in own) > boundary.before.last:
        return True
    ended = any(mark.source == source and mark.at > line for mark in ending_of(run).successes)
    return ended or any(failure.source == source and failure.at > line for failure in standing(run))
