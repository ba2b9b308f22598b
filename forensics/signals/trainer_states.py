"""Which rows of Hugging Face trainer states are copies: every checkpoint repeats the history before it.

States below one folder, its own and those of its `checkpoint-N`, belong to one training. The state that reaches the
highest step is the newest; of equal rows in several of them the newest one's counts, and the others are copies. Rows of
one metric and step with different values are all kept: they are evidence that the history was written twice.
"""

from __future__ import annotations

import polars as pl

_CHECKPOINT = r"(?:^|/)(?:tmp-)?checkpoint-\d+/[^/]+$"
_ROW = ("home", "raw_name", "step", "gstep", "epoch", "value", "value_class")


def states(metrics: pl.LazyFrame, sources: pl.LazyFrame) -> pl.LazyFrame:
    """Rows of trainer states, with three columns more.

    `home` is the folder of the training, `copy` says that a newer state has the row too, and `conflict` that the states
    of the same training give this metric different values at this step.
    """
    of_states = sources.filter(pl.col("ingester") == "trainer_state").select("source").with_columns(_home())
    rows = metrics.join(of_states, on="source", how="inner", maintain_order="left")
    reach = pl.col("step").max().over("source").fill_null(-1)
    in_checkpoint = pl.col("source").str.contains(_CHECKPOINT)
    age = pl.struct(reach.alias("reach"), (~in_checkpoint).alias("own"), "source").rank("dense")
    ranked = rows.with_columns(age.over("home").alias("_age"))
    where = pl.struct("value", "value_class").n_unique().over("home", "source", "raw_name", "step")
    across = pl.struct("value", "value_class").n_unique().over("home", "raw_name", "step")
    return ranked.with_columns(
        (pl.col("_age") < pl.col("_age").max().over(_ROW)).alias("copy"),
        (across > where.max().over("home", "raw_name", "step")).alias("conflict"),
    ).drop("_age")


def without_copies(metrics: pl.LazyFrame, sources: pl.LazyFrame) -> pl.LazyFrame:
    """All metric rows but the copies, in their order; what only an older state holds stays."""
    copies = states(metrics, sources).filter("copy").select("source", "seq", "raw_name")
    return metrics.join(copies, on=["source", "seq", "raw_name"], how="anti", maintain_order="left")


def _home() -> pl.Expr:
    folder = pl.col("source").str.replace(r"[^/]+$", "")
    own = pl.col("source").str.contains(_CHECKPOINT)
    above = folder.str.replace(r"[^/]+/$", "")
    return pl.when(own).then(above).otherwise(folder).alias("home")
