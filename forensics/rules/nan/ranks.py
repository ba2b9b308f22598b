"""Ranks beside each other when a run went non-finite."""

from __future__ import annotations

import polars as pl

from forensics.analyses.nan.onset import NanOnset, lost
from forensics.rules.kit import Findings, Run, Struct, at_step, proof, remark, rule


@rule("NAN010 nan-rank-first", "metrics events", about=lost, severity="warning", confidence="high", cause="rank_first")
def rank_first(_run: Run, found: NanOnset) -> Findings:
    """Find the one rank that went bad before all others."""
    if found.first.row["rank"] is None or "name" not in found.first.row:
        return
    name = found.first.row["name"]
    same = found.rows.filter((pl.col("name") == name) & pl.col("rank").is_not_null() & pl.col("at").is_not_null())
    if same["rank"].n_unique() < 2:
        return
    bad = same.filter(pl.col("bad"))
    ordered = bad.frame("at", "rank").with_row_index("i").sort("at", "rank", maintain_order=True)
    starts = ordered.unique("rank", keep="first", maintain_order=True)
    if starts.is_empty() or starts["at"][0] != found.step or (starts["at"] == found.step).sum() != 1:
        return
    rows = [bad.row(i) for i in starts["i"].to_list()]
    rank = rows[0]["rank"]
    later = [f"rank {row['rank']} follows at {at_step(row['at'])}" for row in rows[1:2]]
    yield rank_first.finding(
        f"rank {rank} went non-finite first, at {at_step(found.step)}",
        later[0] if later else "no other rank is bad at all",
        proof(*rows[:4]),
        found.onset,
        culprits=(rank,),
        numbers={"ranks": same["rank"].n_unique(), "ranks_bad": len(rows)},
    )


_RANKS = 2


class Agreement(Struct, frozen=True):
    """Relative range over the ranks that still is agreement; steps that must agree first; steps that must differ."""

    relative: float = 1e-3
    agree: int = 5
    differ: int = 3


@remark("NAN014 ranks-differ", "metrics events", about=lost, confidence="medium", cause="ranks_differ")
def ranks_differ(_run: Run, found: NanOnset, cfg: Agreement) -> Findings:
    """Find the step from which on the ranks no longer agreed."""
    before = pl.col("at") < found.step if found.step is not None else pl.lit(value=True)
    of_rank = (pl.col("role") == "grad_norm") & pl.col("rank").is_not_null() & pl.col("value").is_finite()
    norms = found.rows.filter(of_rank & before)
    first = _parting(norms.frame("at", "rank", "value"), cfg)
    if first is None:
        return
    rows = norms.filter(pl.col("at") == first).frame().sort("rank").sort("value")
    low, high = rows.row(0, named=True), rows.row(-1, named=True)
    yield ranks_differ.finding(
        f"the gradient norms of the ranks were equal and differ from {at_step(first)} on, before the first bad value",
        "after the gradients are averaged all ranks hold the same ones",
        proof(high, low, *found.evidence()[:1]),
        numbers={"ranks": rows.height},
    )


def _parting(norms: pl.DataFrame, cfg: Agreement) -> int | None:
    """The first of the steps at the end that all differ, when enough steps agreed before."""
    spread = (pl.col("value").max() - pl.col("value").min()) / pl.col("value").median().abs()
    every = norms.group_by("at").agg(differs=spread > cfg.relative, ranks=pl.col("rank").n_unique())
    steps = every.filter((pl.col("ranks") >= _RANKS) & pl.col("at").is_not_null()).sort("at")
    told = steps["differs"].fill_null(value=False).to_list()
    same = next((i for i in range(len(told), 0, -1) if not told[i - 1]), 0)
    if same < cfg.agree or any(told[:same]) or len(told) - same < cfg.differ:
        return None
    return int(steps["at"][same])
