"""Whether the attempts of a run are its folds: parts that a loop trains one by one, of which none replaces another."""

from __future__ import annotations

from itertools import groupby

from forensics.case.processes.attempts import attempts
from forensics.case.processes.fold_counters import Counted, fold_counters
from forensics.case.processes.lives import Boundary, boundaries
from forensics.store.run import Run, derived

#: Fewer are no folds.
_FEWEST = 2


@derived
def has_folds(run: Run) -> bool:
    """Whether a number that is named as a fold goes on by one, as often as there are attempts.

    It may be printed with each record, behind those of its fold, or in a header above them, where the attempt before
    still runs: so the numbers are compared in the order of their lines. A loop around that of the folds, over data sets
    or seeds, begins the numbers anew.
    """
    parts = len(attempts(run).every)
    return parts >= _FEWEST and any(_goes_on(told, parts) for told in fold_counters(run).values())


def _goes_on(told: Counted, parts: int) -> bool:
    numbers = [number for number, _ in groupby(value for _, value in told)]
    if len(numbers) != parts:
        return False
    again = next((at for at in range(1, parts) if numbers[at] == numbers[0]), parts)
    return again >= _FEWEST and numbers == [numbers[0] + at % again for at in range(parts)]


def restarts(run: Run) -> tuple[Boundary, ...]:
    """List the restarts of what had not finished; a fold that begins is none."""
    return () if has_folds(run) else tuple(edge for edge in boundaries(run) if edge.kind != "stage")
