"""NAN010 nan-rank-first: one rank's numbers went bad before those of all others.

What it detects: per-rank losses or gradient norms of which exactly one rank is the first to be non-finite.

Why it matters: once gradients are summed, every rank is NaN. Only the rank that was first has the bad sample, the bad
shard or the bad device, and a flag that all ranks share hides it.

How it decides: the first bad step of each rank, over the same metric; the smallest must belong to one rank alone, and
at least two ranks must log that metric.

What else looks like this: a metric that only one rank prints, which says nothing about the others; a norm after the
reduction, which is equal on all ranks.

What to do next: look at that rank's data at that step; if it repeats on the same host with other data, test the device.

References: the documentation of `torch.distributed.all_reduce`.

Example:
    ```metrics
    source: r0.log*4 r1.log*4
    rank: 0*4 1*4
    seq: 1 2 3 4 1 2 3 4
    step: 5 6 7 8 5 6 7 8
    name: loss
    value: 2.0 2.0 nan nan 2.1 nan*3
    ```
    => NAN010 warning confidence=high step=6 step_lo=5 rank=1 cause=rank_first ranks=2 ranks_bad=2
Not this:
    ```metrics
    source: r0.log*3 r1.log*3
    rank: 0*3 1*3
    seq: (1 2 3)*2
    step: (5 6 7)*2
    loss: 2.0 nan*2 2.1 nan*2
    ```
    => nothing
"""

from __future__ import annotations

import polars as pl

from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.rules.kit import Findings, Run, at_step, proof, rule


@rule("nan", needs=("metrics", "events"), severity="warning", confidence="high", cause="rank_first")
def rank_first(run: Run) -> Findings:
    """Find the one rank that went bad before all others."""
    found = nan_onset(run)
    if (
        found is None
        or found.status is not Status.FAILED
        or found.first.row["rank"] is None
        or "name" not in found.first.row
    ):
        return
    name = found.first.row["name"]
    same = found.rows.filter((pl.col("name") == name) & pl.col("rank").is_not_null() & pl.col("at").is_not_null())
    if same["rank"].n_unique() < 2:
        return
    starts = (
        same.filter("bad").sort("at", "rank", maintain_order=True).unique("rank", keep="first", maintain_order=True)
    )
    if starts.is_empty() or starts["at"][0] != found.step or (starts["at"] == found.step).sum() != 1:
        return
    rows = list(starts.iter_rows(named=True))
    rank = rows[0]["rank"]
    later = (
        f"rank {rows[1]['rank']} follows at {at_step(rows[1]['at'])}"
        if len(rows) > 1
        else "no other rank is bad at all"
    )
    yield rank_first.finding(
        f"rank {rank} went non-finite first, at {at_step(found.step)}",
        later,
        proof(rows[0], *rows[1:4]),
        found.onset,
        culprits=(rank,),
        numbers={"ranks": same["rank"].n_unique(), "ranks_bad": len(rows)},
    )
