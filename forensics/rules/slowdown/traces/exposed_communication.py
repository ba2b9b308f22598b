"""SLO013 trace-exposed-communication: collectives run while nothing computes, for much of the time.

What it detects: time in which a device runs communication kernels and no computation.

Why it matters: that time is not hidden behind work. Waiting for a slow rank looks the same: a collective lasts until
the last rank has come.

How it decides: communication not covered by computation, from unions of intervals over all streams, is at least
`exposed_share` of the time from the first kernel to the last.

What else looks like this: inference with tensor parallelism, where each layer must wait; a rank that waits for another
(then SLO014 names that one).

What to do next: compare ranks: the one with the least communication is the one the others wait for; check whether
collectives cross nodes, buckets are too small, or the sharding stage is too high for the links.

References: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training" (2020), on overlap;
20 % of the wall time is where practitioners call a job bound by communication.

Example:
    ```spans
    category: kernel
    name: gemm_a ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)*4
    start_ns: 0 500000 600000 700000 800000
    dur_ns: 600000 100000*4
    ```
    => SLO013 warning confidence=medium t_ns=500000 cause=communication exposed_share=0.3333 overlap_share=0.2500
Not this: the same collectives under computation
    ```spans
    category: kernel
    name: gemm_a ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)*4
    start_ns: 0 500000 600000 700000 800000
    dur_ns: 900000 100000*4
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.gpu import COMMUNICATION, gpu_rows
from forensics.rules.kit import Finding, Findings, Run, onset_at, proof, rule
from forensics.rules.slowdown._spans import longest, ms, on_rank, percent, quoted, span_evidence


@dataclass(frozen=True, slots=True)
class Exposed:
    """Thresholds of SLO013: share of the traced time, and fewest collectives."""

    exposed_share: float = 0.20
    collectives: int = 4


@rule("slowdown", needs=("spans",), config=Exposed, severity="warning", confidence="medium", cause="communication")
def trace_exposed_communication(run: Run, cfg: Exposed) -> Findings:
    """Find the trace with the largest share of exposed communication."""
    counts = gpu_rows(run).group_by("source").agg(collectives=(pl.col("kind") == COMMUNICATION).sum())
    rows = by_rank(run).join(counts, on="source").with_columns(lost=pl.col("exposed_ns") / pl.col("span_ns"))
    enough = pl.col("collectives") >= cfg.collectives
    found = rows.filter(enough & (pl.col("lost") >= cfg.exposed_share)).sort(
        ["lost", "source"], descending=[True, False]
    )
    if found.height:
        yield _finding(run, found.row(0, named=True), rows.height, found.height)


def _finding(run: Run, row: dict[str, float], traces: int, hit: int) -> Finding:
    mine = (pl.col("source") == row["source"]) & (pl.col("kind") == COMMUNICATION)
    first, *more = longest(gpu_rows(run).filter(mine))
    hidden = row["overlap_ns"] / row["communication_ns"]
    return trace_exposed_communication.finding(
        f"{percent(row['lost'])} of the traced time is communication and nothing is computed{on_rank(row)}",
        f"collectives take {ms(row['communication_ns'])} of {ms(row['span_ns'])}, "
        f"{percent(hidden)} of it under computation" + (f"; seen in {hit} of {traces} traces" if traces > 1 else ""),
        proof(
            span_evidence(first, f"{quoted(first['name'])} ran {ms(first['dur_ns'])}"),
            *(span_evidence(r, f"ran {ms(r['dur_ns'])}") for r in more),
        ),
        onset_at(first),
        numbers={"exposed_share": row["lost"], "overlap_share": hidden, "exposed_s": row["exposed_ns"] / 1e9},
    )
