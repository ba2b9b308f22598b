"""The step of trainers that count batches within an epoch."""

from __future__ import annotations

import polars as pl


def global_step(frame: pl.DataFrame, *, first: int | None = None) -> pl.DataFrame:
    """Fill `step` with `(epoch - first) * iters + iter`; an epoch line without a batch stands at the last step before.

    `first` is the number of the first epoch; None: 0 where an epoch 0 is printed, 1 elsewhere. A bar below an
    `Epoch N` line takes its epoch; a checkpoint named by its epoch holds that whole epoch.
    """
    # ranks' loaders may differ by a batch from epoch to epoch: the largest so far keeps the count growing
    start = first if first is not None else int(not frame["epoch"].eq(0).any())
    epoch, iters = pl.col("epoch").forward_fill(), pl.col("iters").cum_max().forward_fill().backward_fill()
    done = (pl.col("epoch") - start + 1) * iters
    within = (epoch - start) * iters + pl.col("iter")
    saved = pl.col("meaning").is_in(["saved", "committed"])
    step = pl.coalesce("step", pl.when(saved).then(done), within).cast(pl.Int64, strict=False)
    return frame.with_columns(step=step).with_columns(step=pl.col("step").forward_fill())


def epoch_is_step(frame: pl.DataFrame) -> pl.DataFrame:
    """Count in epochs: `step` is the epoch, for lines that name none the one before."""
    whole = pl.col("epoch").cast(pl.Int64, strict=False)
    return frame.with_columns(step=pl.coalesce("step", whole).forward_fill())
