"""Series that turn NaN together where no name says loss: generators, critics and cycles of a GAN, custom objectives."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.analyses.nan.series import Candidate, Shares, Status
from forensics.case.joined.stores import counted
from forensics.case.nonfinite import BAD_CLASSES, series, watched_series
from forensics.case.steps import SERIES, by_record
from forensics.store.run import Run

#: Clocks, rates, counts and scores, which are no objective.
_NO_OBJECTIVE = (
    r"(?i)time|data|sec|speed|fps|eta|(?:^|[\W_])lr|learning|rate|epoch|step|iter|batch|mem|gpu|eval|val|test|acc|auc|prec|recall"
    r"|f1|iou|map|score|std|len|count|num|total|scale|weight|norm"
)
_SERIES_TOGETHER = 2


def lost_together(run: Run) -> Iterator[Candidate]:
    """Give the place where most series of a source that logs no loss became NaN at once, and stayed so."""
    least = run.threshold(Shares).lost_records
    known = watched_series(run)["source"].unique().to_list()
    rows = by_record(
        counted(run, ~pl.col("source").is_in(known) & ~pl.col("name").str.contains(_NO_OBJECTIVE))
        .filter(pl.col("value_class") != "null")
        .with_columns(role=pl.lit("together"), bad=pl.col("value_class").is_in(BAD_CLASSES))
    ).collect()
    if rows.is_empty():
        return
    table = series(rows).filter(pl.col("n") > least)
    lost = (pl.col("n_after") == 0) & (pl.col("n_bad") >= least) & (pl.col("n_bad") == pl.col("n") - pl.col("n_before"))
    for (source, attempt), part in table.group_by("source", "attempt", maintain_order=True):
        gone = part.filter(lost & (pl.col("n_before") > 0))
        if gone.height < _SERIES_TOGETHER or 2 * gone.height < part.height:
            continue
        own = rows.filter((pl.col("source") == source) & (pl.col("attempt") == attempt))
        first = own.join(gone.select(SERIES), on=list(SERIES), nulls_equal=True, maintain_order="left")
        bad = first.filter("bad").row(0, named=True)
        key = gone.filter(pl.col("raw_name") == bad["raw_name"]).row(0, named=True)
        clean = own.filter((pl.col("raw_name") == bad["raw_name"]) & ~pl.col("bad")).row(-1, named=True)
        yield Candidate(Status.FAILED, "together", bad, clean, bad["at"], key["n"], key["n_bad"], 0)
