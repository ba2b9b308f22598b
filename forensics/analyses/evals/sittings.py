"""Evaluations of a run in order: the scores of one checkpoint at one time, a baseline first.

The step of an evaluation is the one that it is filed under, in its own words or in the path of its file; the weights
may be of another one, and are then of a wrong checkpoint. Where neither a step nor a time is known there is no order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from forensics.analyses.evals.results import EARLIEST, Key, Row, courses, settings_of
from forensics.formats.evals.checkpoint_names import step_in
from forensics.knowledge.vocabulary import keys_of, stands_for
from forensics.store.run import Run

_STEPS = keys_of("step_of_result")
#: Settings that name the weights that were loaded, the nearest to them first.
_WEIGHTS = keys_of("weights_of_setting")
_Order = tuple[int, bool, int, str]


class Sitting(Struct, frozen=True):
    """Results of one time: `step` they are filed under, rows by task, metric and filter."""

    step: int | None
    is_baseline: bool
    rows: Mapping[Key, Row]


def filed_step(row: Row) -> int | None:
    """The step that a result is filed under: the one that it states, else the one in its file's path."""
    said = {key.rpartition(".")[2]: cell for key, cell in settings_of(row).items() if key.rpartition(".")[2] in _STEPS}
    stated = next((cell for name in _STEPS if isinstance(cell := said.get(name), (int, float))), None)
    if isinstance(stated, (int, float)) and not isinstance(stated, bool) and stated == int(stated):
        return int(stated)
    source = str(row["source"])
    return step_in([source.rpartition("/")[2], source])


def evaluated_step(row: Row) -> int | None:
    """The step in the name of the weights that were loaded."""
    return step_in(weights for weights in [weights_of(row)] if weights is not None)


def weights_of(row: Row) -> str | None:
    """The weights that were loaded, as the settings name them: the first name with a step, else the first."""
    said = {
        (key if key.startswith("model_args.") else key.rpartition(".")[2]): cell
        for key, cell in settings_of(row).items()
    }
    names = [str(said[key]) for key in _WEIGHTS if isinstance(said.get(key), str)]
    return next((name for name in names if step_in([name]) is not None), names[0] if names else None)


def of_wrong_checkpoint(rows: Sequence[Row]) -> list[Row]:
    """Results that are filed under another step than their weights have.

    A folder that holds results of several steps is named for a series, and weights that are evaluated under several
    steps, never under their own, are the model that training began with: neither tells.
    """
    both = [(row, filed_step(row), evaluated_step(row)) for row in rows]
    told = [(row, filed, made) for row, filed, made in both if filed is not None and made is not None]
    unlike = [one for one in told if one[1] != one[2]]
    filed_of: dict[int, set[int]] = {}
    made_of: dict[int, set[int]] = {}
    for _, filed, made in unlike:
        filed_of.setdefault(made, set()).add(filed)
        made_of.setdefault(filed, set()).add(made)
    agrees = any(filed == made for _, filed, made in told)
    return [
        row for row, filed, made in unlike
        if len(made_of[filed]) == 1 and (agrees or len(filed_of[made]) == 1)
    ]  # fmt: skip


def sittings(run: Run) -> tuple[Sitting, ...]:
    """Every evaluation with a known place in the order.

    A baseline comes before the other results of its step, and one without a step before the last evaluation: what is
    still being trained may well score less. Without any steps and times one evaluation beside a baseline has a place.
    """
    rows = [row for course in courses(run).values() for row in course]
    wrong = {(row["source"], row["seq"]) for row in of_wrong_checkpoint(rows)}
    steps = [filed_step(row) if (row["source"], row["seq"]) in wrong else row["step"] for row in rows]
    steps = [filed_step(row) if step is None else step for row, step in zip(rows, steps, strict=True)]
    last = max((step for step in steps if step is not None), default=None)
    placed: list[tuple[_Order, int | None, Row]] = []
    for row, step in zip(rows, steps, strict=True):
        is_baseline = stands_for("of_a_baseline", str(row["source"]))
        if step is not None or is_baseline or last is None:
            at = step if step is not None else last if last is not None else EARLIEST
            t_ns = row["t_ns"] if row["t_ns"] is not None else EARLIEST
            placed.append(((at, not is_baseline, t_ns, str(row["source"])), step, row))
    return _grouped(_with_a_place(sorted(placed, key=lambda one: one[0])))


def _with_a_place(placed: Sequence[tuple[_Order, int | None, Row]]) -> list[tuple[_Order, int | None, Row]]:
    """Leave out results without step and time, save those of one file beside a baseline."""
    loose = {order[3] for order, step, _ in placed if step is None and order[1] and order[2] == EARLIEST}
    has_baseline = any(not order[1] for order, _, _ in placed)
    if not loose or (len(loose) == 1 and has_baseline):
        return list(placed)
    return [one for one in placed if one[0][3] not in loose]


def _grouped(placed: Sequence[tuple[_Order, int | None, Row]]) -> tuple[Sitting, ...]:
    """Rows of one step that follow each other; a task that comes again begins a new evaluation."""
    found: list[Sitting] = []
    rows: dict[Key, Row] = {}
    last: tuple[int | None, bool] | None = None
    for (_, is_later, _, _), step, row in placed:
        key = (row["task"], row["metric"], row["filter"] or "none")
        if last is not None and (last != (step, not is_later) or key in rows):
            found.append(Sitting(*last, rows))
            rows = {}
        rows[key] = row
        last = (step, not is_later)
    return (*found, Sitting(*last, rows)) if last is not None else ()
