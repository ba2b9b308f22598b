"""Runs that one database of a tracker keeps: which attempts are of which run, and the tables of one of them.

Readers number the attempts of a database over all of its runs and note whose each is. They are several runs where each
begins at its start, none goes on from another, and all but the last had finished or ran beside another one: else they
are attempts of one run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import cast

import polars as pl
from msgspec import Struct

from forensics.case.processes.lives import Life, boundaries
from forensics.store.run import Run

#: Facts of a database: the run of an attempt, and the facts of all runs but the last.
_ATTEMPT, _OTHERS = "tracker.attempt.", "runs."
_BY_ATTEMPT = frozenset(("metrics", "progress"))
_SEVERAL = 2


class Tracked(Struct, frozen=True):
    """One run of a database: its name there, its attempts, and the prefix of its facts (nothing: the last run)."""

    store: str
    name: str
    attempts: frozenset[int]
    under: str


def tracked(run: Run, store: str, lives: Sequence[Life]) -> tuple[Tracked, ...]:
    """List the runs of a database that trained, in the order of their names; none where they are one run."""
    told = run.scan("facts").filter((pl.col("source") == store) & pl.col("key").str.starts_with(_ATTEMPT))
    numbers: dict[tuple[str, str], set[int]] = {}
    for key, value in told.select("key", "value").sort("key").collect().iter_rows():
        about = cast("dict[str, str]", json.loads(value))
        numbers.setdefault((about["run"], about["under"]), set()).add(int(key.removeprefix(_ATTEMPT)))
    every = [Tracked(store, name, frozenset(own), under) for (name, under), own in sorted(numbers.items())]
    trained = {one: found for one in every if (found := [life for life in lives if life.attempt in one.attempts])}
    if len(trained) < _SEVERAL or _goes_on(run, trained):
        return ()
    return tuple(trained) if _have_ended(run, store, trained) or _overlap(trained) else ()


def own_frames(run: Run, one: Tracked) -> dict[str, pl.LazyFrame]:
    """Give the tables with the attempts of one run alone; its facts have the keys of a single run's facts."""
    here, frames = pl.col("source") == one.store, dict(run.frames)
    key = pl.col("key")
    for table, frame in run.frames.items():
        if table in _BY_ATTEMPT:
            frames[table] = frame.filter(~here | pl.col("attempt").is_in(sorted(one.attempts)))
        elif table == "events" and one.under:
            frames[table] = frame.filter(~here)  # they are about the last run
        elif table == "facts":
            own = key.str.starts_with(one.under) if one.under else ~key.str.starts_with(_OTHERS)
            named = pl.when(here).then(key.str.strip_prefix(one.under)).otherwise(key)
            frames[table] = frame.filter(~here | (own & ~key.str.starts_with(_ATTEMPT))).with_columns(key=named)
    return frames


def _goes_on(run: Run, trained: Mapping[Tracked, Sequence[Life]]) -> bool:
    home = {attempt: one for one in trained for attempt in one.attempts}
    anew = {"scratch", "stage"}
    return any(e.kind not in anew and home.get(e.before.attempt) != home.get(e.after.attempt) for e in boundaries(run))


def _have_ended(run: Run, store: str, trained: Mapping[Tracked, Sequence[Life]]) -> bool:
    """Whether each run but the last had ended well by the tracker's word, or all reached the same step."""
    status = pl.col("key").str.ends_with("mlflow.status") & (pl.col("value") == '"FINISHED"')
    finished = run.scan("facts").filter((pl.col("source") == store) & status).select("key").collect()["key"].to_list()
    *before, _ = sorted(trained, key=lambda one: min(one.attempts))
    alike = len({max(life.last for life in found) for found in trained.values()}) == 1
    return alike or all(f"{one.under}mlflow.status" in finished for one in before)


def _overlap(trained: Mapping[Tracked, Sequence[Life]]) -> bool:
    spans = sorted(
        (found[0].t_first, found[-1].t_last)
        for found in trained.values()
        if found[0].t_first is not None and found[-1].t_last is not None
    )
    return any(before[1] > after[0] for before, after in pairwise(spans))
