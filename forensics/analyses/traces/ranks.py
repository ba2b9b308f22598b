"""Finds the rank that the others wait for: one collective in the traces of several ranks, and each arrival.

A collective ends on all ranks together, so the rank that spends least time in it came last. Collectives are matched by
process group and sequence number where the trace has them, else by their order among kernels of the same name, when
every rank has as many. Clocks are aligned by the ends: a rank's offset is the median of its ends less those of all.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from forensics.analyses.traces.gpu import COMMUNICATION, gpu_rows
from forensics.store.run import Run, derived

_RANKS_LEAST = 2


@derived
def arrivals(run: Run) -> pl.DataFrame:
    """One row a matched collective and rank, sorted by collective and rank.

    Columns: key, size (ranks that have it), rank, source, seq, name, start_ns (on the common clock), dur_ns, wait_ns
    (until the last rank arrived), last (whether this rank was it).
    """
    work = gpu_rows(run).filter((pl.col("kind") == COMMUNICATION) & pl.col("rank").is_not_null())
    work = _one_window(work)
    if work["rank"].n_unique() < _RANKS_LEAST:
        return pl.DataFrame(schema=_SCHEMA)
    keyed = _keyed(work, _groups(run)).drop_nulls("key")
    seen = pl.len().over("key")
    shared = keyed.filter(seen >= _RANKS_LEAST, pl.col("rank").n_unique().over("key") == seen)
    return _timed(shared.with_columns(size=seen))


def waits(run: Run) -> pl.DataFrame:
    """One row a rank, the one with the least wait first.

    Columns: rank, source, collectives, wait_ns, last (times it arrived last), comm_ns and chance. `chance` is the
    probability that any one of the ranks came last so often if each was as likely to (the upper tail of a binomial
    distribution, times the number of ranks, at most 1).
    """
    found = (
        arrivals(run)
        .group_by("rank", "source")
        .agg(
            collectives=pl.len(),
            wait_ns=pl.col("wait_ns").sum(),
            last=pl.col("last").sum().cast(pl.Int64),
            comm_ns=pl.col("dur_ns").sum(),
        )
        .sort("wait_ns", "rank")
    )
    ranks = found.height
    chances = [chance_of(n, last, ranks) for n, last in found.select("collectives", "last").iter_rows()]
    return found.with_columns(pl.Series("chance", chances, pl.Float64))


def chance_of(collectives: int, last: int, ranks: int) -> float:
    """P(X ≥ last) of a binomial with `collectives` trials of probability 1/ranks, times the ranks."""
    counts = np.arange(1, collectives + 1)
    logs = np.r_[0.0, np.cumsum(np.log(counts[::-1]) - np.log(counts))]
    k = np.arange(last, collectives + 1)
    terms = logs[k] + k * np.log(1 / ranks) + (collectives - k) * np.log1p(-1 / ranks)
    return min(1.0, float(np.exp(terms).sum()) * ranks)


_SCHEMA = {
    "key": pl.String,
    "size": pl.UInt32,
    "rank": pl.Int32,
    "source": pl.String,
    "seq": pl.Int64,
    "name": pl.String,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "wait_ns": pl.Int64,
    "last": pl.Boolean,
}


def _one_window(work: pl.DataFrame) -> pl.DataFrame:
    """Keep one trace a rank, the first: a second one is of another window."""
    first = work.group_by("rank", maintain_order=True).agg(pl.col("source").first())
    return work.join(first, on=["rank", "source"], how="semi", maintain_order="left")


def _groups(run: Run) -> pl.DataFrame:
    """Process group and sequence number of the collectives whose kernels carry them."""
    rows = (
        run.scan("spans")
        .filter((pl.col("category") == "kernel") & pl.col("attrs").str.contains('"Collective name"', literal=True))
        .select("source", "seq", "attrs")
        .collect()
    )

    def text(key: str) -> pl.Expr:
        return pl.col("attrs").str.extract(rf'"{key}": ?"?([^",}}]+)')

    return rows.select("source", "seq", group=text("Process Group Name"), number=text("Seq"))


def _keyed(work: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    named = work.join(groups, on=["source", "seq"], how="left", maintain_order="left")
    numbered = pl.concat_str(pl.lit("group "), "group", pl.lit(" seq "), "number")
    family = pl.concat_str(pl.col("name").str.extract(r"^([\w:]+)"), pl.col("group").fill_null(""), separator="|")
    named = named.with_columns(family=family)
    order = pl.int_range(pl.len()).over("source", "family")
    counted = named.group_by("family").agg(counts=pl.len().over("source").n_unique(), ranks=pl.col("source").n_unique())
    named = named.with_columns(order=order).join(counted, on="family", how="left", maintain_order="left")
    even = pl.when((pl.col("counts") == 1) & (pl.col("ranks") >= _RANKS_LEAST))
    ordered = even.then(pl.concat_str("family", pl.lit(" number "), "order"))
    return named.with_columns(key=pl.coalesce(numbered, ordered))


def _timed(rows: pl.DataFrame) -> pl.DataFrame:
    """Put the ranks on one clock and say how long each waited; a collective that ranks did not share at once is out."""
    # ends less the first end of all: small numbers, which floats hold exactly
    ends = rows.with_columns(late=pl.col("end_ns") - pl.col("end_ns").min().over("key"))
    ends = ends.with_columns(late=pl.col("late") - pl.col("late").median().over("key"))
    offset = pl.col("late").median().over("source").round().cast(pl.Int64)
    clock = ends.with_columns(start_ns=pl.col("start_ns") - offset, end_ns=pl.col("end_ns") - offset)
    last = pl.col("start_ns").max().over("key")
    together = last < pl.col("end_ns").min().over("key")
    return (
        clock.with_columns(wait_ns=last - pl.col("start_ns"), last=last == pl.col("start_ns"))
        .filter(together)
        .select(*_SCHEMA)
        .sort("key", "rank")
        .cast(pl.Schema(_SCHEMA))
    )
