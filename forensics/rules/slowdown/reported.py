"""A rank that the program's own detector calls slow."""

from __future__ import annotations

from collections import Counter

import polars as pl

from forensics.knowledge.errors import telling
from forensics.rules.kit import Findings, Onset, Run, Struct, event_evidence, rule


class Reports(Struct, frozen=True):
    """Thresholds of SLO044: so many reports of one rank, and that share of all reports."""

    reports: int = 3
    share: float = 0.5


@rule("SLO044 reported-straggler", "events", severity="warning", cause="straggler")
def reported_straggler(run: Run, cfg: Reports) -> Findings:
    """Name the rank that most reports name."""
    rows = run.scan("events").filter(pl.col("code").is_in(telling("straggler_report")) & pl.col("rank").is_not_null())
    told = rows.sort("source", "line", "seq").collect()
    (rank, times), *_ = Counter(told["rank"].to_list()).most_common(1) or [(0, 0)]
    if times < cfg.reports or times < cfg.share * told.height:
        return
    own = told.filter(pl.col("rank") == rank)
    first, last = own.row(0, named=True), own.row(-1, named=True)
    yield reported_straggler.finding(
        f"rank {rank} is called slow by the run's own detector, {times} times",
        f"{times} of {told.height} reports name it; all others wait for it",
        (event_evidence(first), event_evidence(last)),
        Onset(step=first["step"], t_ns=first["t_ns"], rank=rank),
        confidence="medium",
        culprits=(rank,),
        numbers={"reports": times},
        next=("forensics kernels TRACE",),
    )
