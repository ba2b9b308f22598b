"""The last record of each log and the usual time between steps, which a stop from outside is laid beside."""

from __future__ import annotations

import polars as pl

from forensics.rules.hang import no_progress
from forensics.store.run import run_of

S = 1_000_000_000


def test_a_step_is_its_first_record_and_a_line_counts_once_in_whatever_order_they_are_held() -> None:
    rows = [("b.log", seq, step, at_s * S) for seq, step, at_s in ((0, 1, 0), (1, 2, 10), (2, 2, 15), (3, 3, 40))]
    held = [("a.log", 2, 7, 20 * S), *rows, ("a.log", 0, 5, 0), ("a.log", 0, 9, 0), ("a.log", 1, 6, 10 * S)]
    metrics = pl.DataFrame(held, schema=["source", "seq", "step", "t_ns"], orient="row")
    run = run_of("run", {"metrics": metrics.with_columns(line="seq", name=pl.lit("loss"), value=pl.lit(2.0))})
    found = no_progress._records(run, 3).select(
        "source", "step", "seq", "t_ns", usual=pl.col("usual") / S, count="count"
    )
    assert found.rows() == [("a.log", 7, 2, 20 * S, 10.0, 3), ("b.log", 3, 3, 40 * S, 20.0, 3)]
    assert no_progress._records(run, 4).is_empty()
