"""How much work a step holds, where it is logged: tokens or samples, to tell longer steps from slow ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from forensics.case.series import metric_rows
from forensics.case.steps import ordered
from forensics.knowledge.vocabulary import keys_of
from forensics.store.run import Run
from forensics.values import replace

if TYPE_CHECKING:
    from forensics.analyses.pace.clocks import Clock

_TOTALS = ("num_tokens", "num_samples")
#: The work of a step grows with the length of its sequences where the batch stays.
_LENGTHS = keys_of("length_of_a_step")
#: Tokens before samples: as many longer samples are more work.
_FINEST_FIRST = (*keys_of("tokens_of_a_step"), *keys_of("samples_of_a_step"), *_LENGTHS)
_UNIT = dict.fromkeys(_LENGTHS, "position") | dict.fromkeys(keys_of("tokens_of_a_step"), "token")
_CHANGE = 1.01  # least change of the work per step that matters
#: Work that explains the time of a step takes noise away, a jump of both leaves it. A total that is printed as 1.25B,
#: in steps of 10M, made it 3.9 times as much (nanotron's format, 360 records, 4 % of noise).
_NOISIER = 1.5


def work_of(run: Run) -> pl.DataFrame:
    """Give the work per step: source, attempt, rank, `at`, `work` and `unit`, sorted; empty where none is logged."""
    own = metric_rows(run, pl.col("name").is_in(_FINEST_FIRST)).filter(pl.col("value_class") == "finite")
    rows = ordered(own).filter(pl.col("at").is_not_null())
    over = ["source", "attempt", "rank", "name"]
    passed = (pl.col("at") - pl.col("at").shift(1)).over(over)
    total = ((pl.col("value") - pl.col("value").shift(1)).over(over) / passed).alias("work")
    work = pl.when(pl.col("name").is_in(_TOTALS)).then(total).otherwise(pl.col("value")).alias("work")
    found = rows.with_columns(work).filter(pl.col("work").is_finite() & (pl.col("work") > 0))
    unit = pl.col("name").replace_strict(_UNIT, default="sample").alias("unit")
    return found.select("source", "attempt", "rank", "at", "name", "work", unit).collect()


def per_work(clock: Clock, work: pl.DataFrame) -> Iterator[Clock]:
    """Give the clock per token or sample as well, where the work of a step was logged and did not stay the same."""
    if clock.unit != "step" or not work.height:
        return
    own = work.filter(
        (pl.col("source") == clock.source)
        & (pl.col("attempt") == clock.attempt)
        & pl.col("rank").eq_missing(pl.lit(clock.rank, dtype=pl.Int32))
    )
    if not own.height:
        return
    each = (own.filter(pl.col("name") == name) for name in _FINEST_FIRST)
    known = next(filter(_varies, (rows.unique("at", keep="first", maintain_order=True) for rows in each)), None)
    if known is None:
        return
    rows = clock.rows.join(known.select("at", "work"), on="at", how="inner", maintain_order="left")
    if 2 * rows.height < clock.rows.height:
        return
    fair = rows["pace"] / rows["work"]
    if _roughness(fair) > max(_NOISIER * _roughness(rows["pace"]), _CHANGE - 1):
        return
    rows = rows.with_columns(pace=fair).drop("work")
    yield replace(clock, unit=str(known["unit"][0]), rows=rows, order=clock.order - 50, quantum=0.0)


def _varies(known: pl.DataFrame) -> bool:
    low, high = known["work"].quantile(0.05), known["work"].quantile(0.95)
    return low is not None and high is not None and high >= _CHANGE * low


def _roughness(pace: pl.Series) -> float:
    """How far the pace goes from record to record: the third quartile, in logarithms."""
    return pace.filter(pace > 0).log().diff().abs().drop_nulls().quantile(0.75) or 0.0
