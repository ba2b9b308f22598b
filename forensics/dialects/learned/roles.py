"""What the columns of a family of lines count: the step, the batch within an epoch, or the epoch.

The names say what a column may be, and the numbers whether it is: a counter grows, and starts again where a run, a fold
or an epoch does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from operator import gt, lt

from forensics.dialects.learned.families import Column
from forensics.knowledge.vocabulary import stands_for


def last_word(key: str) -> str:
    """The last word of a key: `step` of `train/step`, `epoch` of `Epoch Number`."""
    words = re.split(r"[\s/.]", key.lower().rstrip("."))
    return words[-2] if len(words) > 1 and stands_for("word_behind_a_counter", words[-1]) else words[-1]


def _counts_steps(column: Column) -> bool:
    names = (last_word(column.key), column.key.lower().replace(" ", "_"))
    named = (
        not column.optional
        and not column.role
        and not _is_rate(column)
        and any(stands_for("counter_of_steps", name) for name in names)
    )
    in_parts = stands_for("counter_in_parts", names[0])
    return named and (in_parts or all(v.is_integer() for v in column.values))


def _counts_epochs(column: Column) -> bool:
    """Whether a column is named as epochs are; one letter names epochs only where it counts, as an epsilon does not."""
    word = last_word(column.key)
    told = len(word) > 1 or (all(value.is_integer() for value in column.values) and grows(column))
    return told and not column.optional and not _is_rate(column) and stands_for("counter_of_epochs", word)


def _is_rate(column: Column) -> bool:
    """Whether the key is a unit behind the number that divides one by another: `ex/s`, `sec/epoch`."""
    return "/" in column.behind


def roles_of(columns: Sequence[Column]) -> dict[str, str]:
    """Which columns are the step, the batch within an epoch, and the epoch (key → role)."""
    roles: dict[str, str] = {}
    epochs = [c for c in columns if c.role == "epoch" or _counts_epochs(c)]
    same, epoch = next(iter(epochs), None), next(filter(grows, epochs), None)
    steps = sorted(filter(_counts_steps, columns), key=lambda c: "step" not in last_word(c.key))
    steps += [c for c in columns if not c.key and not c.role]
    for column in steps:
        role = _step_role(column, same)
        if role:
            roles[column.key] = role
            break
    if same is not None and not same.role and (epoch is not None or roles):
        roles[same.key] = "epoch"
    counts_epochs = same is not None and {*roles.values()} <= {"epoch"}
    if same is not None and counts_epochs and (around := _around(same, columns)) is not None:
        roles |= {around.key: "epoch", same.key: "iter"}
    is_finer = same is not None and len({*same.values}) < len(same.values)
    even = [c for c in columns if c.counts_evenly] if not roles or (is_finer and {*roles.values()} == {"epoch"}) else []
    if even:
        named = [c for c in columns if c.key and c not in even]
        told = [c.place for c in named if stands_for("printed_metric", c.key) or c.has_a_course]
        first = min(even, key=lambda c: c.place)
        roles |= {first.key: "step"} if told and first.place < min(told) else {}
    return roles


def _around(epochs: Column, columns: Sequence[Column]) -> Column | None:
    """What counts on where the epochs of one model begin anew: its tasks, cycles or stages."""
    named = (c for c in columns if stands_for("counter_around_epochs", last_word(c.key)) and not c.optional)
    counted = (c for c in named if grows(c) and all(value.is_integer() for value in c.values))
    return next((c for c in counted if _step_role(epochs, c) == "iter"), None)


def _step_role(column: Column, epoch: Column | None) -> str:
    """`step` for a counter of the whole run, `iter` for one that starts again in each epoch, empty for neither."""
    values = column.values
    falls = [i for i, (a, b) in enumerate(pairwise(values), 1) if b < a and i not in column.begins]
    if epoch is not None and len(epoch.values) == len(values):
        turns = [i for i, (a, b) in enumerate(pairwise(epoch.values), 1) if b > a]
        anew = {
            i for i, (a, b) in enumerate(pairwise(epoch.values), 1) if b < a
        }  # the next fold, or a job that began again
        within = [i for i in falls if i not in anew]
        if within and len(turns) == len(values) - 1 > 1:
            return ""  # of one record an epoch no batch begins anew: a patience
        if within and (all(i in turns for i in within) or _begins_with(turns, falls)):
            return "iter"
        is_inner = stands_for("counter_within_an_epoch", last_word(column.key)) or bool(column.maxima)
        if is_inner and not falls and not turns and grows(column):
            return "iter"
    elif falls and column.maxima and all(_wraps(column, i) for i in falls):
        return "iter"
    return "step" if grows(column) else ""


def _begins_with(turns: Sequence[int], falls: Sequence[int]) -> bool:
    """Whether a counter begins anew with every epoch, and within one perhaps for the batches of its validation."""
    return len(turns) >= _FEWEST_FALLS and all(turn in falls for turn in turns)


#: Between two epochs a loop prints nothing; a job that begins again prints its heads first.
_BETWEEN_EPOCHS = 1
#: One fall may be a run that began again.
_FEWEST_FALLS = 2


def counts_batches(column: Column, places: Sequence[int]) -> bool:
    """Whether a counter begins anew where each time it reached the same number, and few lines are printed between.

    `places` are those of its numbers, as lines of the log.
    """
    values = column.values
    falls = [i for i, (a, b) in enumerate(pairwise(values), 1) if b < a]
    ends, begins = {values[i - 1] for i in falls}, {values[i] for i in falls}
    near = all(places[i] - places[i - 1] <= _BETWEEN_EPOCHS for i in falls)
    return len(falls) >= _FEWEST_FALLS and len(ends) == 1 and begins == {values[0]} and near


def _wraps(column: Column, i: int) -> bool:
    """Whether a counter fell near its maximum, to where it began or the begin of an epoch; a resume goes on higher."""
    begin = max(column.values[0], 0.2 * column.maxima[i].value)
    return column.values[i - 1] >= 0.8 * column.maxima[i - 1].value and column.values[i] <= begin


def grows(column: Column) -> bool:
    """Rises, and falls only where a run began again or another rank's rows begin; a number alone does."""
    if len(column.values) == 1:
        return True
    before, behind = column.values, column.values[1:]
    rises = sum(map(lt, before, behind))
    falls = (at for at, falls in enumerate(map(gt, before, behind), 1) if falls)
    return rises > 0 and sum(at not in column.begins for at in falls) <= max(1, rises // 5)
