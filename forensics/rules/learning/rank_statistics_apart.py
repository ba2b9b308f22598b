"""LRN031 rank-statistics-apart: the mean of one tensor, printed by every rank, leaves that of the others on one rank.

What it detects: lines `[rank2] hidden: mean=… std=…`, of which one rank's drift away.

Why it matters: the first tensor and the first rank that part are where a distributed bug begins.

How it decides: the n-th lines of the ranks are compared. A rank's distance from their median, over the last fifth of
its lines, is `sigmas` times the usual distance of all ranks in the first half, for at least `ranks` ranks and `lines`
lines.

What else looks like this: ranks that print the tensor at other times; a tensor that holds local data.

What to do next: compare what differs on that rank: its data, its seed, its host.

References: PyTorch, DistributedDataParallel, on what it keeps equal.

Example:
    ```events
    source: a.log*20 b.log*20 c.log*20 d.log*20
    line: (1..20)*4
    code: rank-statistics
    rank: 0*20 1*20 2*20 3*20
    attrs: {"name":"hidden","mean":"0.1"}*72 {"name":"hidden","mean":"0.3"}*8
    ```
    => LRN031 warning confidence=medium rank=3 cause=ranks_parted ranks=4
Not this: ranks that agree
    ```events
    source: a.log*20 b.log*20 c.log*20 d.log*20
    line: (1..20)*4
    code: rank-statistics
    rank: 0*20 1*20 2*20 3*20
    attrs: {"name":"hidden","mean":"0.1"}
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from forensics.case.last_steps import last_step
from forensics.knowledge.errors import telling
from forensics.rules.kit import Findings, Onset, Run, at_step, event_evidence, number, proof, rule
from forensics.stats.spread import Floats


@dataclass(frozen=True, slots=True)
class Statistics:
    """Thresholds of LRN031: deviations, ranks and lines of each; less than `digits` of the mean is rounding."""

    sigmas: float = 6.0
    ranks: int = 4
    lines: int = 20
    digits: float = 1e-3


@rule(
    "learning",
    needs=("events", "metrics"),
    config=Statistics,
    severity="warning",
    confidence="medium",
    cause="ranks_parted",
)
def rank_statistics_apart(run: Run, cfg: Statistics) -> Findings:
    """Find the tensor and the rank that leave the others by most deviations."""
    rows = _rows(run)
    parted = [found for _, part in rows.group_by("name", maintain_order=True) if (found := _apart(part, cfg))]
    if not parted:
        return
    sigmas, rank, row = max(parted, key=lambda one: one[0])
    step = row["step"]
    if step is None:
        step = last_step(run, row["source"], row["line"] or row["byte"] or 0, row["t_ns"], rank)
    yield rank_statistics_apart.finding(
        f"the mean of {row['name']} on rank {rank} leaves the mean of the other ranks from {at_step(step)} on",
        f"it ends {number(sigmas)} deviations away from their median",
        proof(event_evidence(row)),
        Onset(step=step, t_ns=row["t_ns"], rank=rank),
        culprits=(rank,),
        numbers={"sigmas": sigmas, "ranks": rows.filter(pl.col("name") == row["name"])["who"].n_unique()},
    )


def _rows(run: Run) -> pl.DataFrame:
    said = pl.col("attrs").fill_null("{}")
    of_line = said.str.json_path_match("$.rank").cast(pl.Int64, strict=False)
    return (
        run.scan("events")
        .filter(pl.col("code").is_in(telling("rank_statistics")))
        .with_columns(
            who=pl.coalesce(of_line, pl.col("rank").cast(pl.Int64)),
            name=said.str.json_path_match("$.name"),
            mean=said.str.json_path_match("$.mean").cast(pl.Float64, strict=False),
        )
        .filter(pl.col("who").is_not_null() & pl.col("mean").is_finite())
        .sort("source", "line", "seq")
        .with_columns(turn=pl.int_range(pl.len()).over("name", "who"))
        .collect()
    )


def _apart(rows: pl.DataFrame, cfg: Statistics) -> tuple[float, int, dict[str, Any]] | None:
    wide = rows.sort("turn").pivot("who", index="turn", values="mean", aggregate_function="first").drop_nulls()
    ranks = sorted(int(name) for name in wide.columns if name != "turn")
    if len(ranks) < cfg.ranks or wide.height < cfg.lines:
        return None
    values = wide.select(map(str, ranks)).to_numpy()
    distance: Floats = values - np.median(values, axis=1, keepdims=True)
    early = distance[: len(distance) // 2]
    usual = max(1.4826 * float(np.median(np.abs(early))), cfg.digits * float(np.median(np.abs(values))), 1e-12)
    last = np.median(distance[-max(1, len(distance) // 5) :], axis=0)
    odd = int(np.argmax(np.abs(last)))
    sigmas = abs(float(last[odd])) / usual
    if sigmas < cfg.sigmas:
        return None
    away = np.abs(distance[:, odd]) > cfg.sigmas * usual / 2
    first = int(np.flatnonzero(~away)[-1]) + 1 if not away.all() else 0
    turn = int(wide["turn"][min(first, wide.height - 1)])
    row = rows.filter((pl.col("who") == ranks[odd]) & (pl.col("turn") == turn)).row(0, named=True)
    return sigmas, ranks[odd], row
