"""The step of lines that print none: ways of counting that trainers share, by the name that a table calls them.

Each takes all matches of one file in order (columns `seq`, `line`, `meaning`, `step`, `epoch`, `epochs`, `iter`,
`iters`, `max_steps`, `rank`) and gives them back with `step` filled where it can be told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import polars as pl

Steps = Callable[[pl.DataFrame], pl.DataFrame]
#: Matches that name the step of a checkpoint that is older than what was printed before them.
_OWN_STEP_ONLY = ("resumed", "removed", "started")
#: Two rows of a printed table with a heading between them.
_HEADED = 2
#: A bar whose count moved between so many records counts the training.
_RECORDS = 3


def of_batches(frame: pl.DataFrame, *, first: int | None = None) -> pl.DataFrame:
    """Fill `step` with `(epoch - first) * iters + iter`; a line without a batch takes the last step before it.

    `first` is the number of the first epoch; None: 0 where an epoch 0 is printed, 1 elsewhere. A bar below an
    `Epoch N` line takes its epoch; a checkpoint named by its epoch holds that whole epoch. Where no line prints how
    many batches an epoch has, it has as many as were ever counted.
    """
    if frame["iters"].null_count() == frame.height:
        frame = frame.with_columns(iters=pl.lit(frame["iter"].max(), dtype=pl.Int64))
    # ranks' loaders may differ by a batch from epoch to epoch: the largest so far keeps the count growing
    start = first if first is not None else int(not frame["epoch"].eq(0).any())
    epoch, iters = pl.col("epoch").forward_fill(), pl.col("iters").cum_max().forward_fill().backward_fill()
    done = (pl.col("epoch") - start + 1) * iters
    within = (epoch - start) * iters + pl.col("iter")
    saved = pl.col("meaning").is_in(["saved", "committed"])
    step = pl.coalesce("step", pl.when(saved).then(done), within).cast(pl.Int64, strict=False)
    filled = pl.when(~pl.col("meaning").is_in(_OWN_STEP_ONLY)).then(pl.col("step").forward_fill())
    return frame.with_columns(step=step).with_columns(step=pl.coalesce("step", filled))


def of_epochs(frame: pl.DataFrame) -> pl.DataFrame:
    """Count in epochs: `step` is the epoch, for lines that name none the one before."""
    whole = pl.col("epoch").cast(pl.Int64, strict=False)
    return frame.with_columns(step=pl.coalesce("step", whole).forward_fill())


def of_batches_if_any(frame: pl.DataFrame) -> pl.DataFrame:
    """Count batches where lines are inside of an epoch, else epochs."""
    inside = (frame["meaning"] == "metrics") & (frame["iter"] < frame["iters"])
    return of_batches(frame, first=1) if inside.any() else of_epochs(frame)


def of_own_counter(frame: pl.DataFrame) -> pl.DataFrame:
    """Take `step` where any line prints one, else `iter`; other lines take the last one before them."""
    counted = "step" if frame["step"].is_not_null().any() else "iter"
    return frame.with_columns(step=pl.col(counted).forward_fill())


def of_bar(frame: pl.DataFrame) -> pl.DataFrame:
    """Give each step-less metrics or end row the training bar's count beside it, else epoch x total / epochs.

    A bar has no name, and evaluation draws one of its own, so the training bar is found by its total: its count moves
    from one record to the next. The frame drawn before a record may be some updates old, as a bar is drawn ten times a
    second at most, and the bar is mostly redrawn after the record; of the two, the one whose counts advance more evenly
    from record to record is believed. A log that keeps the last frame of a bar alone, as W&B's output.log, has that
    before all records: a full bar then counted until the epoch that the training's end names.
    """
    bar = pl.col("meaning") == "progress"
    wanted = pl.col("meaning").is_in(["metrics", "ended"]) & pl.col("step").is_null()
    frame = frame.with_columns(
        _count=pl.when(bar).then(pl.col("step")).forward_fill(),
        _total=pl.when(bar & pl.col("step").is_not_null()).then(pl.col("max_steps")).forward_fill(),
        _epochs=pl.when(bar).then(pl.col("epochs")).forward_fill(),
        _announced=pl.when(bar & pl.col("step").is_null()).then(pl.col("max_steps")).forward_fill(),
    )
    totals = _training_totals(frame.filter(wanted & pl.col("_total").is_not_null()))
    drawn = pl.when(bar & pl.col("max_steps").is_in(totals)).then(pl.col("step"))
    frame = frame.with_columns(_before=drawn.forward_fill(), _after=drawn.backward_fill())
    later = pl.when(pl.col("_after") >= pl.col("_before")).then(pl.col("_after")).otherwise(pl.col("_before"))
    frame = frame.with_columns(_after=pl.coalesce(later, "_after"))
    metrics = frame.filter(wanted & (pl.col("meaning") == "metrics"))
    beside = "_after" if _evenness(metrics["_after"]) > _evenness(metrics["_before"]) else "_before"
    total, epochs, count = pl.col("_announced"), pl.col("_epochs"), pl.col(beside)
    full = frame.filter(bar & (pl.col("step") == pl.col("max_steps")))["step"].max()
    if full is not None and metrics["epoch"].n_unique() > 1 and metrics[beside].unique().to_list() == [full]:
        total, epochs = count, pl.lit(frame.filter(meaning="ended")["epoch"].max(), pl.Float64)
        count = pl.when(meaning="ended").then(count)
    share = (pl.col("epoch") * total / epochs).round().cast(pl.Int64, strict=False)
    step = pl.when(wanted).then(pl.coalesce(count, share)).otherwise(pl.col("step"))
    return frame.with_columns(step=step).drop("_count", "_total", "_epochs", "_announced", "_before", "_after")


def _evenness(counts: pl.Series) -> float:
    """Share of the commonest increment among those above zero; 0 when there is none."""
    increments = counts.diff().drop_nulls()
    increments = increments.filter(increments > 0)
    return 0.0 if increments.is_empty() else float((increments == increments.mode().min()).sum()) / len(increments)


def _training_totals(before: pl.DataFrame) -> list[int]:
    """Totals of bars that are the training's: the commonest before metrics, and those whose count moves between them.

    An evaluation bar shows the same few counts again and again.
    """
    if before.is_empty():
        return []
    seen = (
        before.group_by("_total", maintain_order=True)
        .agg(count=pl.len(), moves=pl.col("_count").n_unique())
        .sort("count", descending=True, maintain_order=True)
    )
    moving = seen.filter((pl.col("count") >= _RECORDS) & (2 * pl.col("moves") > pl.col("count")))
    return [int(seen["_total"][0]), *(int(total) for total in moving["_total"])]


def of_boxes(frame: pl.DataFrame) -> pl.DataFrame:
    """Give each row of a printed table the step that one row of it prints; a row without one takes the last before it.

    Rows of one table are on consecutive lines, or around the heading of a section.
    """
    table = (pl.col("line").diff() > _HEADED).fill_null(value=False).cum_sum()
    beside = pl.col("step").drop_nulls().first().over(table)
    return frame.with_columns(step=pl.coalesce("step", beside, pl.col("step").forward_fill()))


#: What a table calls each of them.
NAMED: Mapping[str, Steps] = MappingProxyType(
    {
        "batches": of_batches,
        "batches from epoch 0": partial(of_batches, first=0),
        "batches from epoch 1": partial(of_batches, first=1),
        "batches from epoch 1, else epochs": of_batches_if_any,
        "epochs": of_epochs,
        "bar": of_bar,
        "boxes": of_boxes,
        "steps, else iterations": of_own_counter,
    }
)
