"""Evaluation results of a run as rules and comparisons need them: direction, chance, settings, results in order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from math import isfinite, sqrt
from types import MappingProxyType
from typing import Any

import polars as pl

from forensics.io.tables import table_rows
from forensics.io.tolerant_json import as_object, loads
from forensics.knowledge.scores import is_higher_better, is_share
from forensics.store.run import Run

Row = Mapping[str, Any]
Key = tuple[str, str, str]
#: Documents that a result is taken to have where it does not say: the fewest that one finds published.
FEWEST_DOCUMENTS = 30
#: Agresti and Coull 1998: two right and two wrong added, so that a share of 0 or 1 has an error, too.
_ADDED = 2
#: The step, or the time, of results without one.
EARLIEST = -(1 << 62)


def higher_is_better(*rows: Row) -> bool | None:
    """Direction of a metric: as a file says, else by its name; None where neither tells."""
    told = next((r["higher_is_better"] for r in rows if r.get("higher_is_better") is not None), None)
    return bool(told) if told is not None else is_higher_better(str(rows[0]["metric"]))


def scale_of(*rows: Row) -> float:
    """The value of a right answer in these results of one metric: 1, or 100 where they are percentages."""
    return 100.0 if max(abs(float(row["value"])) for row in rows) > 1 else 1.0


def error_of(row: Row, scale: float = 1.0) -> float | None:
    """Standard error of a result, at least that of its documents; None where nothing gives one.

    A score between 0 and 1, or a percentage, varies no more than a share of right answers does; where neither error nor
    documents are stated it is taken to be of `FEWEST_DOCUMENTS`.
    """
    share = float(row["value"]) / scale
    stated = float(row["stderr"]) if row["stderr"] is not None and isfinite(row["stderr"]) else None
    if not higher_is_better(row) or not 0 <= share <= 1:
        return stated or None
    if stated and (row["n"] is None or not is_share(str(row["metric"]))):
        return stated
    n = row["n"] or FEWEST_DOCUMENTS
    right = (share * n + _ADDED) / (n + 2 * _ADDED)
    counted = scale * sqrt(right * (1 - right) / (n + 2 * _ADDED))
    return max(stated, counted) if stated is not None else counted


def settings_of(row: Row) -> Mapping[str, object]:
    """Settings of a result; empty when absent."""
    return _settings(row["settings"] or "{}")


@lru_cache(maxsize=4096)
def _settings(text: str) -> Mapping[str, object]:
    return MappingProxyType(as_object(loads(text.encode())))


def members_of(row: Row) -> tuple[str, ...]:
    """Give the tasks that a group is made of; empty for a task."""
    found = settings_of(row).get("members")
    return tuple(found.split(",")) if isinstance(found, str) else ()


def age(row: Row) -> tuple[int, int, str]:
    """Order of results of one task: by step, by time, by name of the file."""
    step, t_ns = row["step"], row["t_ns"]
    return step if step is not None else EARLIEST, t_ns if t_ns is not None else EARLIEST, row["source"]


def by_key(frame: pl.DataFrame) -> dict[Key, list[Row]]:
    """Rows by task, metric and filter (`none` without a filter), in the order of the frame."""
    found: dict[Key, list[Row]] = {}
    for row in frame.iter_rows(named=True):
        found.setdefault((row["task"], row["metric"], row["filter"] or "none"), []).append(row)
    return found


def courses(run: Run) -> dict[Key, list[Row]]:
    """Results with a value, by task, metric and filter, each from the earliest to the last."""
    if "evals" not in run.frames:
        return {}
    known = by_key(run.collect("evals").filter(pl.col("value").is_not_null()))
    return {key: sorted(rows, key=age) for key, rows in known.items()}


@cache
def _chances() -> tuple[tuple[str, float], ...]:
    return tuple((name, float(share)) for name, share in table_rows("forensics.analyses.evals", "chance.tsv"))


def benchmark_of(name: str) -> float | None:
    """Share of right answers that guessing gives in the task that a logged metric names, if it names a known one."""
    words = re.split(r"[/_. -]+", name.lower())
    joined = f"_{'_'.join(words)}_"
    return next((share for task, share in _chances() if f"_{task}_" in joined), None)


def chance_of(task: str) -> float | None:
    """Share of right answers that guessing gives, where the number of choices of a task is known."""
    plain = task.rsplit("|", 1)[-1].removeprefix("leaderboard_").removeprefix("hendrycksTest-").lower()
    if task.rsplit("|", 1)[-1].startswith(("hendrycksTest-", "mmlu:", "mmlu_")) and "pro" not in plain[:8]:
        return 0.25
    return next((share for name, share in _chances() if plain in (name, name.replace("_", ":"))), None)
