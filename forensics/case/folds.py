"""Whether the attempts of a run are its folds: parts that a loop trains one by one, of which none replaces another."""

from __future__ import annotations

from itertools import groupby

from forensics.case.fold_counters import Counted, fold_counters
from forensics.case.processes.attempts import attempts
from forensics.store.run import Run, derived


@derived
def has_folds(run: Run) -> bool:
    """Whether a number that is named as a fold goes on by one, as often as there are attempts.

    It may be printed with each record, behind those of its fold, or in a header above them, where the attempt before
    still runs: so the numbers are compared in the order of their lines.
    """
    parts = len(attempts(run).every)
    return parts > 1 and any(_goes_on(told, parts) for told in fold_counters(run).values())


def _goes_on(told: Counted, parts: int) -> bool:
    numbers = [number for number, _ in groupby(value for _, value in told)]
    return numbers == [numbers[0] + at for at in range(parts)]
