"""What to do about a run whose logs end without an error, and without a word that it finished."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.action import Action
from forensics.case.endings import ending
from forensics.case.progress import ledger
from forensics.case.series import metric_records
from forensics.knowledge.doing import OpenEnd, any_end, open_end_of
from forensics.store.run import Run


def at_an_open_end(run: Run) -> tuple[Action, ...]:
    """Give what to do where the run was last seen; nothing where it finished, or no log of it is here."""
    end = ending(run)
    if end.success is not None or end.reach.is_reached:
        return ()
    return tuple(Action(row.advice, row.source, row.command or None) for row in _rows(run))


def _rows(run: Run) -> Iterator[OpenEnd]:
    lines = run.scan("events").filter(pl.col("code") == "last_line").sort("source").collect()["text"].to_list()
    known = next((row for line in lines if (row := open_end_of(line or "")) is not None), None)
    if known is not None:
        yield known
    if lines and (known is not None or ledger(run).counters or not metric_records(run).head(1).collect().is_empty()):
        yield any_end()
