"""Where numbers stop being finite: which metrics are watched, and how each series of them runs.

A loss, its parts and the gradient norm are watched. Timings, scores of empty classes, spreads of one sample and
evaluation tables are NaN by design in healthy runs, so they are not.
"""

from __future__ import annotations

import polars as pl

from forensics.signals.steps import SERIES, ordered

_NOT_A_LOSS = r"(?i)scale|best|good|mask|eval|valid|\bval\b|val_|val/|test|weight|coef|std"
BAD_CLASSES = ("nan", "+inf", "-inf", "null-suspected-nan", "filtered-by-writer")


def role() -> pl.Expr:
    """What a metric is to a NaN search: `loss`, `grad_norm`, `eval` (held-out loss), `part` (of the loss), or null."""
    name = pl.col("name")
    part = name.str.contains("(?i)loss") & ~name.str.contains(_NOT_A_LOSS)
    return (
        pl.when(name == "loss")
        .then(pl.lit("loss"))
        .when(name == "grad_norm")
        .then(pl.lit("grad_norm"))
        .when(name.is_in(["eval_loss", "eval_bpb"]))
        .then(pl.lit("eval"))
        .when(part)
        .then(pl.lit("part"))
        .alias("role")
    )


def watched(metrics: pl.LazyFrame) -> pl.LazyFrame:
    """Rows of watched metrics with `role`, `at` and `bad`, in record order; rows that hold no number are left out."""
    rows = metrics.filter(pl.col("value_class") != "null").with_columns(role()).filter(pl.col("role").is_not_null())
    return ordered(rows.with_columns(bad=pl.col("value_class").is_in(BAD_CLASSES)))


def series(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per series of watched rows.

    Columns: the series' key, `role`, `n` records, `n_bad`, `n_after` (finite records after the last bad one),
    `n_before` (finite records before the first bad one), `t_last_bad_ns`.
    """
    index = pl.int_range(pl.len())
    first, last = index.filter("bad").min(), index.filter("bad").max()
    return rows.group_by(*SERIES, maintain_order=True).agg(
        pl.col("role").first(),
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("bad").sum().cast(pl.Int64).alias("n_bad"),
        (pl.len().cast(pl.Int64) - 1 - last).alias("n_after"),
        first.alias("n_before"),
        pl.col("t_ns").filter("bad").max().alias("t_last_bad_ns"),
    )


def of_series(rows: pl.DataFrame, key: dict[str, object]) -> pl.DataFrame:
    """The rows of one series, in order, with `bad_share`: the share of bad records from each row to the end."""
    own = rows.filter(pl.col(column).eq_missing(pl.lit(key[column])) for column in SERIES)
    left = pl.int_range(pl.len(), 0, -1)
    return own.with_columns(bad_share=pl.col("bad").cast(pl.Int64).reverse().cum_sum().reverse() / left)


def trailing_zeros(losses: pl.DataFrame) -> pl.DataFrame:
    """The rows at the end of one loss series that are exactly zero, in order."""
    nonzero = losses.with_row_index("i").filter(pl.col("value") != 0.0)["i"]
    last = nonzero.max()
    return losses.slice(0 if last is None else int(str(last)) + 1)
