"""The dynamic loss scale of fp16 training: its series, its falls, and the updates that were skipped for it."""

from __future__ import annotations

import polars as pl

from forensics.case.joined.stores import counted
from forensics.case.steps import ordered
from forensics.knowledge.errors import telling
from forensics.store.run import Run


def scale(run: Run) -> pl.DataFrame:
    """Rows of `loss_scale` with `at` and `change`: -1 where the scale fell, 1 where it rose, else 0."""
    rows = ordered(counted(run, pl.col("name") == "loss_scale").filter(pl.col("value").is_finite())).collect()
    key = ("source", "attempt", "rank")
    return rows.with_columns(change=pl.col("value").diff().over(key).sign().fill_null(0).cast(pl.Int64))


def overflows(events: pl.LazyFrame) -> pl.DataFrame:
    """Event rows that announce a skipped update, one per line, in file order."""
    return _once(_overflows(events))


def falling(events: pl.LazyFrame) -> pl.DataFrame:
    """Event rows that let the scale fall and say to what, with `scale`, in file order."""
    to = [pl.col("attrs").str.json_path_match(f"$.{name}") for name in ("to", "scale")]
    number = pl.coalesce(*to).str.strip_chars_end(".,").cast(pl.Float64, strict=False)
    return _once(_overflows(events).with_columns(scale=number).filter(pl.col("scale").is_not_null()))


def _overflows(events: pl.LazyFrame) -> pl.LazyFrame:
    code = pl.col("code")
    return events.filter(code.str.ends_with(".overflow") | code.is_in(telling("skipped_update")))


def _once(rows: pl.LazyFrame) -> pl.DataFrame:
    """One row for each line: a trainer's own row of a line and that of the catalogue tell of one update."""
    return rows.sort("source", "seq").collect().unique(("source", "line", "byte"), keep="first", maintain_order=True)


def floors(events: pl.LazyFrame) -> pl.DataFrame:
    """Event rows that say that the scale is at its minimum, in file order."""
    return events.filter(pl.col("code").is_in(telling("scale_at_floor"))).sort("source", "seq").collect()


def skipped(run: Run) -> pl.DataFrame:
    """Rows of skip and NaN counters with `at` and `delta`: updates skipped in each record.

    A name that ends in `_total` counts from the start and is differenced; the others count per record.
    """
    names = ("skipped_steps", "skipped_steps_total", "nan_steps")
    rows = ordered(counted(run, pl.col("name").is_in(names)).filter(pl.col("value").is_finite())).collect()
    step = pl.col("value").diff().over("source", "attempt", "rank", "name")
    total = pl.col("name").str.ends_with("_total")
    return rows.with_columns(delta=pl.when(total).then(step.fill_null(pl.col("value"))).otherwise("value").clip(0))
