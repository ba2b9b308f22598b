"""Which checkpoints a run left, from lines that speak of them and folders on disk, and which are safe to use."""

from __future__ import annotations

import polars as pl

_BEST_FIRST = {"directory": 0, "committed": 1, "saved": 2}
_WRITTEN = tuple(_BEST_FIRST)


def known(checkpoints: pl.LazyFrame) -> pl.DataFrame:
    """One row per step, sorted by step.

    Columns: `step`, `path`, `source`, `line`, `committed`, `removed`, `on_disk`, `complete`. A path of a folder on disk
    is preferred to a commit line's, and that to a save line's. A step saved again after its removal
    is not removed.
    """
    rows = checkpoints.filter(pl.col("step").is_not_null()).with_columns(
        written=pl.col("kind").is_in(_WRITTEN),
        order=pl.col("kind").replace_strict(_BEST_FIRST, default=9, return_dtype=pl.Int32),
    )
    frame = rows.collect().sort("source", "attempt", "seq", maintain_order=True)
    fates = pl.col("kind").filter(pl.col("kind").is_in([*_WRITTEN, "removed"]) & (pl.col("kind") != "directory"))
    best = frame.group_by("step", maintain_order=True).agg(
        pl.col("written").any(),
        _best("path", pl.col("written") & pl.col("path").is_not_null()),
        _best("source", pl.col("written")),
        _best("line", pl.col("written")),
        (pl.col("kind") == "committed").any().alias("committed"),
        (pl.col("kind") == "directory").any().alias("on_disk"),
        (fates.last() == "removed").fill_null(value=False).alias("removed"),
        pl.col("complete").filter(pl.col("kind") == "directory").max(),
    )
    best = best.with_columns(removed=pl.col("removed") & ~pl.col("on_disk"))
    return best.filter("written").drop("written").sort("step")


def _best(column: str, kept: pl.Expr) -> pl.Expr:
    """The first value of a column among kept rows, those of a folder on disk before commit lines before save lines."""
    return pl.col(column).filter(kept).sort_by(pl.col("order").filter(kept)).first()


def judged(
    rows: pl.DataFrame, *, first_bad: int, last_clean: int | None, gradient_seen: bool, suspect_from: int | None = None
) -> pl.DataFrame:
    """Known checkpoints with `state` (clean, unknown, dirty, removed, incomplete) and `why`.

    The loss of step s is computed before update s, so a checkpoint at the last step with a finite loss may already hold
    a bad update; only a finite gradient norm of that step proves it clean (`gradient_seen`). All numbers are steps:
    `suspect_from` is where a rise began that ended in the first bad step. Without a last clean step everything before
    the first bad one is unknown.
    """
    step, clean = pl.col("step"), pl.lit(last_clean, dtype=pl.Int64)
    edge = (
        "the gradient norm of its own step is finite"
        if gradient_seen
        else "the loss of its own step is finite, that of the next is not known: look for NaN in it before use"
    )
    kept = ~pl.col("committed") & ~pl.col("on_disk") & pl.lit(bool(rows["committed"].any()))
    broken = ~pl.col("complete").fill_null(value=True)
    table = (
        (pl.col("removed"), "removed", "a later line says that it was deleted"),
        (broken, "incomplete", "the files on disk are not those of a finished save"),
        (kept, "incomplete", "its save began, but no line says that it was committed"),
        (step >= first_bad, "dirty", f"saved at or after the first bad step {first_bad}"),
        (clean.is_null(), "unknown", "no finite record comes before the first bad one"),
        (step > clean, "unknown", f"between the last clean record ({last_clean}) and the first bad one ({first_bad})"),
        (step >= pl.lit(suspect_from, dtype=pl.Int64), "unknown", f"saved after a rise began at step {suspect_from}"),
        (step == clean, "clean", edge),
        (step < clean, "clean", f"finite records follow it, up to step {last_clean}"),
    )
    state, why = pl.lit(None, dtype=pl.String), pl.lit(None, dtype=pl.String)
    for condition, name, reason in reversed(table):
        met = condition.fill_null(value=False)
        state = pl.when(met).then(pl.lit(name)).otherwise(state)
        why = pl.when(met).then(pl.lit(reason)).otherwise(why)
    return rows.with_columns(state=state, why=why)
