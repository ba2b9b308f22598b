"""What every trainer built on the Hugging Face one shares: its bar, its header, its checkpoint lines, and no step.

The logged dict carries an epoch but no step. The bar that is drawn beside it does; a bar has no name, and evaluation
draws one of its own, so the training bar is told by its total: its count moves from one dict to the next.
"""

from __future__ import annotations

import polars as pl

from forensics.dialects.spec import Line, N, Name


def number(group: str) -> str:
    """A number that may stand in single quotes, captured as `group`."""
    return rf"'?(?P<{group}>{N})'?"


ANY = rf"'?{N}'?"

#: Keys that some frameworks put beside the Trainer's own; memory is in GiB.
EXTRA_NAMES: dict[str, Name | None] = {
    "memory/max_active (GiB)": Name("mem_active_peak_gib"),
    "memory/max_allocated (GiB)": Name("mem_peak_gib"),
    "memory/device_reserved (GiB)": Name("mem_reserved_gib"),
    "memory/max_mem_active(gib)": Name("mem_active_peak_gib"),
    "memory/max_mem_allocated(gib)": Name("mem_peak_gib"),
    "memory/device_mem_reserved(gib)": Name("mem_reserved_gib"),
    "num_input_tokens_seen": Name("num_tokens"),
    "train_tokens_per_second": Name("tokens_per_sec_avg"),
    "eval_runtime": Name("eval_time_s"),
}

BAR = Line("progress", "%|", r"^\s*\d+%\|[^|]*\|\s*(?P<step>\d+)/(?P<max_steps>\d+) \[")
HEADER = (
    Line("progress", "Num Epochs = ", r"Num Epochs = (?P<epochs>[\d,]+)"),
    Line("progress", "Total optimization steps = ", r"Total optimization steps = (?P<max_steps>[\d,]+)"),
)
CHECKPOINTS = (
    Line("saved", "Saving model checkpoint to ", r"Saving model checkpoint to (?P<path>\S*checkpoint-(?P<step>\d+))"),
    Line("resumed", "from global step ", r"Continuing training from global step (?P<step>\d+)"),
)
END = Line("ended", "{'train_runtime': ", rf"\{{'train_runtime': {ANY}.*'epoch': {number('epoch')}\}}")
SHARED = (BAR, *HEADER, *CHECKPOINTS, END)


def fill_step(frame: pl.DataFrame) -> pl.DataFrame:
    """Give each step-less metrics or end row the training bar's count beside it, else epoch x total / epochs.

    The frame drawn before a dict may be some updates old, as a bar is drawn ten times a second at most, and the bar is
    mostly redrawn after the dict; of the two, the one whose counts advance more evenly from dict to dict is believed.
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
    share = (pl.col("epoch") * pl.col("_announced") / pl.col("_epochs")).round().cast(pl.Int64, strict=False)
    step = pl.when(wanted).then(pl.coalesce(beside, share)).otherwise(pl.col("step"))
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
    moving = seen.filter((pl.col("count") >= 3) & (2 * pl.col("moves") > pl.col("count")))
    return [int(seen["_total"][0]), *(int(total) for total in moving["_total"])]
