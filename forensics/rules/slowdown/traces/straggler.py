"""SLO014 trace-straggler: one rank comes last to the collectives, and the others wait for it.

What it detects: in traces of several ranks, the rank for which the others wait.

Why it matters: a job of many devices runs at the pace of the slowest. In a table of kernels the victims stand out, as
their collectives are long; the culprit's are the shortest.

How it decides: the same collectives are found on the ranks, by process group and sequence number or by order, and put
on one clock by their common ends. A warning names the rank with the least waiting time when it came last so often that
chance alone would do it for some rank with a probability below `chance`, in at least `collectives` collectives, and the
other ranks lose at least `lost_share` of their traced time (median) to waiting.

What else looks like this: a rank that has more work by design, such as the first or last pipeline stage; traces that
begin at different steps.

What to do next: compare clocks, temperatures and the data loading of that rank with its neighbours; swap the node.

References: Wu et al., "FALCON: Pinpointing and Mitigating Stragglers for Large-Scale Hybrid-Parallel Training" (2024);
a rank counts as slow from 5 % on.

Example:
    ```spans
    source: r0.json*4 r1.json*4 r2.json*4 r3.json*4 r4.json*4
    rank: 0*4 1*4 2*4 3*4 4*4
    category: kernel
    name: ncclDevKernel_AllReduce_Sum
    start_ns: 1000..61000/20000 9000..69000/20000 (2000..62000/20000)*3
    dur_ns: 9000*4 1000*4 8000*12
    ```
    => SLO014 warning confidence=medium t_ns=9000 rank=1 cause=straggler lost_share=0.4118 chance=0.008000
Not this: each rank is late once
    ```spans source,rank,category,name,start_ns,dur_ns
    r0.json,0,kernel,ncclDevKernel_AllReduce_Sum,9000,1000
    r0.json,0,kernel,ncclDevKernel_AllReduce_Sum,21000,9000
    r1.json,1,kernel,ncclDevKernel_AllReduce_Sum,1000,9000
    r1.json,1,kernel,ncclDevKernel_AllReduce_Sum,29000,1000
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.ranks import arrivals, waits
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule
from forensics.rules.slowdown._spans import ms, percent, quoted, span_evidence


@dataclass(frozen=True, slots=True)
class Straggler:
    """Thresholds of SLO014: probability by chance, number of collectives, share of the time that others lose."""

    chance: float = 0.01
    collectives: int = 4
    lost_share: float = 0.05


@rule("slowdown", needs=("spans",), config=Straggler, severity="warning", cause="straggler")
def trace_straggler(run: Run, cfg: Straggler) -> Findings:
    """Name the rank for which the others wait."""
    found = waits(run)
    if found.is_empty():
        return
    late, spans = found.row(0, named=True), by_rank(run).select("source", "span_ns")
    others = found.slice(1).join(spans, on="source").select(pl.col("wait_ns") / pl.col("span_ns")).to_series()
    lost = others.median()
    if late["collectives"] < cfg.collectives or late["chance"] >= cfg.chance or late["last"] < found["last"].max():
        return
    if isinstance(lost, float) and lost >= cfg.lost_share:
        yield _finding(run, late, found, lost)


def _finding(run: Run, late: dict[str, float], found: pl.DataFrame, lost: float) -> Finding:
    shared = arrivals(run)
    worst = shared.filter((pl.col("rank") == late["rank"]) & pl.col("last")).select("key")
    waited = shared.join(worst, on="key", how="semi").sort("wait_ns", "rank", descending=[True, False])
    victim, rank = waited.row(0, named=True), int(late["rank"])
    own = waited.filter((pl.col("rank") == rank) & (pl.col("key") == victim["key"])).row(0, named=True)
    total = int(found.filter(pl.col("rank") != rank)["wait_ns"].sum())
    return trace_straggler.finding(
        f"rank {rank} comes last to {late['last']} of {late['collectives']} collectives; "
        f"the others wait {percent(lost)} of the traced time (median)",
        f"it waits {ms(late['wait_ns'])} itself, the other {found.height - 1} ranks {ms(total)} together; "
        f"by chance some rank would come last so often with a probability of {late['chance']:.2g}",
        proof(
            span_evidence(own, f"rank {rank} arrived last and was in {quoted(own['name'])} for {ms(own['dur_ns'])}"),
            span_evidence(victim, f"rank {victim['rank']} waited {ms(victim['wait_ns'])} for it"),
        ),
        Onset(t_ns=own["start_ns"], rank=rank),
        confidence="medium" if late["chance"] > 1e-4 else "high",
        culprits=(rank,),
        numbers={
            "last": late["last"],
            "collectives": late["collectives"],
            "lost_share": lost,
            "chance": late["chance"],
        },
    )
