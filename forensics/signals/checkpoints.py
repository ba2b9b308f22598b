"""Which checkpoints a run left, from the lines that speak of them and the folders on disk, and which are safe to use."""

from __future__ import annotations

import polars as pl


def known(checkpoints: pl.LazyFrame) -> pl.DataFrame:
    """One row per step, sorted by step.

    Columns: `step`, `path`, `source`, `line`, `committed`, `removed`, `on_disk`, `complete`. A path of a folder on disk
    is preferred to a commit line's, and that to a save line's. A step that was saved again after its removal is not removed.
    """
    written = pl.col("kind").is_in(["saved", "committed", "directory"])
    order = pl.col("kind").replace_strict({"directory": 0, "committed": 1, "saved": 2}, default=3, return_dtype=pl.Int32)
    rows = checkpoints.filter(pl.col("step").is_not_null()).with_columns(written=written, order=order).collect()
    rows = rows.sort("source", "attempt", "seq", nulls_last=False, maintain_order=True)
    gone = (pl.col("kind").filter(pl.col("kind").is_in(["saved", "committed", "removed"])).last() == "removed").fill_null(
        value=False
    )
    best = rows.group_by("step", maintain_order=True).agg(
        pl.col("written").any(),
        pl.col("path").filter(pl.col("written") & pl.col("path").is_not_null()).sort_by(_order("order")).first(),
        pl.col("source").filter("written").sort_by(pl.col("order").filter("written")).first(),
        pl.col("line").filter("written").sort_by(pl.col("order").filter("written")).first(),
        (pl.col("kind") == "committed").any().alias("committed"),
        (pl.col("kind") == "directory").any().alias("on_disk"),
        gone.alias("removed"),
        pl.col("complete").filter(pl.col("kind") == "directory").last().alias("complete"),
    )
    best = best.with_columns(removed=pl.col("removed") & ~pl.col("on_disk"))
    return best.filter("written").drop("written").sort("step")


def _order(column: str) -> pl.Expr:
    return pl.col(column).filter(pl.col("written") & pl.col("path").is_not_null())


def judged(rows: pl.DataFrame, *, first_bad: int, last_clean: int | None, gradient_seen: bool) -> pl.DataFrame:
    """Known checkpoints with `state` (clean, unknown, dirty, removed, incomplete) and `why`.

    The loss of step s is computed before update s, so a checkpoint at the last step with a finite loss may already hold a
    bad update; only a finite gradient norm of that step proves it clean (`gradient_seen`). `first_bad` and `last_clean`
    are steps; without a last clean step everything before the first bad one is unknown.
    """
    step, clean = pl.col("step"), pl.lit(last_clean, dtype=pl.Int64)
    edge = (
        "its gradient norm is finite at this very step"
        if gradient_seen
        else "the loss of its own step is finite; that of the next is not known: load it and look for NaN before use"
    )
    gone, broken = pl.col("removed").fill_null(value=False), ~pl.col("complete").fill_null(value=True)
    table = (
        (gone, "removed", "a later line says that it was deleted"),
        (broken, "incomplete", "the folder lacks files that a finished save has"),
        (step >= first_bad, "dirty", f"saved at or after the first bad step {first_bad}"),
        (clean.is_null(), "unknown", "no finite record comes before the first bad one"),
        (step < clean, "clean", f"finite records follow it, up to step {last_clean}"),
        (step == clean, "clean", edge),
        (pl.lit(value=True), "unknown", f"between the last clean record ({last_clean}) and the first bad one ({first_bad})"),
    )
    state, why = pl.lit(None, dtype=pl.String), pl.lit(None, dtype=pl.String)
    for condition, name, reason in reversed(table):
        state = pl.when(condition).then(pl.lit(name)).otherwise(state)
        why = pl.when(condition).then(pl.lit(reason)).otherwise(why)
    return rows.with_columns(state=state, why=why)
