"""Collects the metrics of evaluations as columns of the `evals` table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from forensics.formats.rows.json_records import number
from forensics.formats.rows.out import Out
from forensics.knowledge.vocabulary import keys_of

_INT64 = range(-(1 << 63), 1 << 63)
_PLAIN = frozenset(keys_of("plain_in_results"))


class EvalRow(NamedTuple):
    """One row of `evals`, without what the sink adds."""

    seq: int
    line: int | None
    byte: int | None
    task: str
    task_version: str | None
    metric: str
    filter: str | None
    value: float | None
    stderr: float | None
    n: int | None
    fewshot: int | None
    higher_is_better: bool | None
    model: str | None
    step: int | None
    t_ns: int | None
    settings: str


def write_rows(out: Out, rows: Iterable[EvalRow]) -> int:
    """Hand rows to the sink; how many there were."""
    every = list(rows)
    if every:
        out.rows("evals", dict(zip(EvalRow._fields, zip(*every, strict=True), strict=True)))
    return len(every)


class Measured(NamedTuple):
    """One metric of a task: its key as printed, name, filter, value and standard error."""

    key: str
    metric: str
    filter: str | None
    value: float | None
    stderr: float | None


def measured(task: Mapping[str, object]) -> list[Measured]:
    """Metrics of one task's object, numbers and nulls; an error of `"N/A"` is None, one of NaN stays."""
    found: list[Measured] = []
    for key, cell in task.items():
        metric, _, by = key.partition(",")
        if key in _PLAIN or metric.endswith("_stderr") or isinstance(cell, (dict, list, bool)):
            continue
        value = number(cell)
        if value is None and cell is not None:
            continue
        error = number(task.get(f"{metric}_stderr,{by}" if by else f"{metric}_stderr"))
        found.append(Measured(key, metric, by or None, value, None if error is None or error < 0 else error))
    return found


def whole(cell: object) -> int | None:
    """A whole number of at most 64 bits, from `5`, `5.0` or `"5"`; else None."""
    value = number(cell)
    if value is None or value != value or value in (float("inf"), float("-inf")) or value != int(value):  # noqa: PLR0124 - NaN
        return None
    return int(value) if int(value) in _INT64 else None


def text_of(cell: object) -> str | None:
    """A version or a name as text: `1.0` and `1` are the same version; None stays None."""
    if cell is None or isinstance(cell, (dict, list)):
        return None
    value = number(cell)
    return f"{value:g}" if value is not None else str(cell)[:200]
