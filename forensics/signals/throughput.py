"""Seconds per step, from whichever clock a source prints best."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.signals.steps import ordered
from forensics.signals.stores import counted
from forensics.store.run import Run

#: Best first. A difference of a running clock covers every step between two records; a printed step time is one
#: sample of them; a rate is the inverse of one. Averages since the start are left out: they hide a late change.
_CLOCKS = ("train_time_s", "step_time_s", "tokens_per_sec")


def paces(run: Run) -> Iterator[pl.DataFrame]:
    """Give one frame per source, attempt and rank: metric rows of its best clock, in order.

    Added columns: `at` the step; `lo` the step of the record before; `pace` seconds per step (seconds per token for a
    rate), positive; `busy` whether an evaluation or a checkpoint may lie inside the time measured: at `at`, and for a
    running clock at any step from `lo` on.
    """
    own = pl.col("name").is_in(_CLOCKS) & (pl.col("value_class") == "finite")
    rows = ordered(counted(run).filter(own)).filter(pl.col("at").is_not_null()).collect()
    busy = busy_steps(run)
    for (source, _, _), part in rows.group_by(["source", "attempt", "rank"], maintain_order=True):
        name = next(n for n in _CLOCKS if (part["name"] == n).any())
        timed = _timed(part.filter(pl.col("name") == name), name)
        steps = busy.filter(pl.col("source") == source)["at"]
        yield marked(timed, steps, running=name == "train_time_s")


def rates(run: Run, source: str, rank: int | None) -> pl.DataFrame:
    """Give the tokens per second that one source prints: columns `at` and `value`, in order."""
    own = (pl.col("name") == "tokens_per_sec") & (pl.col("source") == source) & (pl.col("value") > 0)
    rows = ordered(run.scan("metrics").filter(own & pl.col("rank").eq_missing(pl.lit(rank, dtype=pl.Int32))))
    return rows.filter(pl.col("value").is_finite() & pl.col("at").is_not_null()).select("at", "value").collect()


def _timed(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    if rows["raw_name"].n_unique() > 1:
        commonest = rows["raw_name"].value_counts(sort=True)["raw_name"][0]
        rows = rows.filter(pl.col("raw_name").eq_missing(pl.lit(commonest)))
    rows = rows.unique("at", keep="first", maintain_order=True).with_columns(lo=pl.col("at").shift(1))
    passed = pl.col("at") - pl.col("lo")
    pace = {
        "train_time_s": pl.col("value").diff() / passed,
        "step_time_s": pl.col("value"),
        "tokens_per_sec": 1 / pl.col("value"),
    }[name]
    rows = rows.with_columns(pace=pace)
    return rows.filter((passed > 0) & (pl.col("pace") > 0) & pl.col("pace").is_finite())


def marked(rows: pl.DataFrame, busy: pl.Series, *, running: bool) -> pl.DataFrame:
    """Mark records whose time may hold a step of `busy`, which is sorted: all since the last record when `running`."""
    place = pl.Series(busy.search_sorted(rows["lo" if running else "at"], side="left"))
    next_busy = busy.cast(pl.Int64).extend_constant(None, 1).gather(place)
    return rows.with_columns(busy=(next_busy <= rows["at"]).fill_null(value=False))


def busy_steps(run: Run) -> pl.DataFrame:
    """Steps at which a source evaluated or saved, sorted."""
    evals = ordered(run.scan("metrics").filter(pl.col("name").str.starts_with("eval"))).select("source", "at")
    saves = run.scan("checkpoints").filter(pl.col("kind").is_in(["saved", "committed"]))
    both = pl.concat([evals, saves.select("source", pl.col("step").alias("at"))])
    return both.filter(pl.col("at").is_not_null()).unique().sort("source", "at").collect()
