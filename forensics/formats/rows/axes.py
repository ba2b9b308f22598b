"""Names under which writers print the step, the epoch and the time of a row, best first."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.knowledge.vocabulary import keys_of

STEPS, EPOCHS, TIMES = keys_of("step_of_row"), keys_of("epoch_of_row"), keys_of("time_of_row")
#: Names of a time only where it is a date: `time` is as often a duration.
DATES = keys_of("date_of_row")
#: Names of the rank that a record is of, where one file holds those of several.
RANKS = keys_of("rank_of_row")
#: Names of the data that a record is of, where one file holds records of training and of held-out data.
SPLITS = keys_of("split_of_row")
#: Printed with every row, but no metric.
CONSTANTS = keys_of("constant_of_row")


def first_of(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Index of the best of the wanted names, case-blind; None when there is none."""
    lowered = [name.lower() for name in names]
    return next((lowered.index(name) for name in wanted if name in lowered), None)
