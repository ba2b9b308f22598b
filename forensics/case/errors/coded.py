"""Events by their codes: most questions about them are about lines that the run has none of, and cost no query."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from forensics.knowledge.errors import telling
from forensics.store.run import Run, derived, nothing


@derived
def codes(run: Run) -> frozenset[str]:
    """List the codes of all events."""
    if "events" not in run.frames:
        return frozenset()
    return frozenset(run.scan("events").select(pl.col("code").drop_nulls().unique()).collect()["code"])


def events_telling(run: Run, *facts: str, order: Iterable[str] = ()) -> pl.DataFrame:
    """Give the events that tell one of some facts, as `events_of` does; raises `KeyError` where no row tells one."""
    return events_of(run, frozenset[str]().union(*map(telling, facts)), order)


def ending_with(run: Run, end: str) -> frozenset[str]:
    """List the codes of events that have an end, as `.started`: each trainer has its own."""
    return frozenset(code for code in codes(run) if code.endswith(end))


def events_of(run: Run, wanted: Iterable[str], order: Iterable[str] = ()) -> pl.DataFrame:
    """Give the events of some codes in the order of some columns, or else of the table."""
    own = codes(run).intersection(wanted)
    if not own:
        return nothing("events")
    rows = run.scan("events").filter(pl.col("code").is_in(sorted(own)))
    columns = [*order]
    return (rows.sort(columns) if columns else rows).collect()
