"""SLO012 trace-launch-bound: many tiny kernels, and a device that waits for the host to launch the next.

What it detects: a device idle again and again because the host is late to launch, with kernels so short that launching
one takes as long as running it.

Why it matters: a faster device does not help; Python and the launches are the limit.

How it decides: at least `idle_share` of the time from the first kernel to the last is idle with the host busy with
something else than a data loader, a collective or a blocking call, in at least `gaps` gaps; that is most of the idle
time; and at least `short_share` of the kernels, of which there are at least `kernels`, run shorter than `short_us`.

What else looks like this: a profiler that records Python stacks slows the host, not the device, so shares of idle time
in such a trace are too high; a graph capture; a warm-up step.

What to do next: `torch.compile`, CUDA graphs, fused or foreach optimizers, larger batches; take a trace without stacks.

References: NVIDIA, "Getting Started with CUDA Graphs" (2019), on launch overhead; kernels below 10 µs are the usual
definition of short ones, and idle time is called high from 15 %.

Example:
    ```spans
    step: 3 -*22
    category: user_annotation (cuda_runtime kernel)*11
    name: ProfilerStep#3 (cudaLaunchKernel add)*11
    start_ns: 0 5000 10000 45000 50000 85000 90000 125000 130000 165000 170000 205000 210000 245000 250000 285000 290000
        325000 330000 365000 370000 405000 410000
    dur_ns: 500000 (4000 3000)*11
    correlation: - 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9 10*2 11*2
    thread: 1/1*2 (- 1/1)*10 -
    ```
    => SLO012 warning confidence=low step=3 t_ns=13000 cause=launch_bound lost_share=0.9181 short_share=1.000
Not this: short kernels that were queued in time
    ```spans step,category,name,start_ns,dur_ns,correlation,thread
    3,user_annotation,ProfilerStep#3,0,200000,,1/1
    ,cuda_runtime,cudaLaunchKernel,1000,1000,1,1/1
    ,kernel,add,10000,3000,1,
    ,cuda_runtime,cudaLaunchKernel,2000,1000,2,1/1
    ,kernel,add,14000,3000,2,
    ,cuda_runtime,cudaLaunchKernel,3000,1000,3,1/1
    ,kernel,add,18000,3000,3,
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.gaps import HOST, idle_causes, idle_gaps
from forensics.analyses.traces.gpu import gpu_rows
from forensics.rules.kit import Finding, Findings, Run, onset_at, proof, rule
from forensics.rules.slowdown._spans import longest, ms, on_rank, percent, quoted, span_evidence

_MOST_OF_IDLE = 0.5


@dataclass(frozen=True, slots=True)
class LaunchBound:
    """Thresholds of SLO012: shares of the time and of the kernels; microseconds of a short kernel; fewest of each.

    Below `many` kernels the confidence is low.
    """

    idle_share: float = 0.15
    short_share: float = 0.5
    short_us: float = 10.0
    kernels: int = 10
    gaps: int = 10
    many: int = 100


@rule("slowdown", needs=("spans",), config=LaunchBound, severity="warning", cause="launch_bound")
def trace_launch_bound(run: Run, cfg: LaunchBound) -> Findings:
    """Find the trace in which late launches cost most."""
    host = idle_causes(run).filter(pl.col("cause") == HOST).select("source", "gaps", host_ns="time_ns")
    kernels = gpu_rows(run).filter(pl.col("category") == "kernel")
    short = kernels.group_by("source").agg(
        kernels=pl.len(), short=(pl.col("dur_ns") < cfg.short_us * 1000).mean(), median_ns=pl.col("dur_ns").median()
    )
    rows = by_rank(run).join(host, on="source").join(short, on="source")
    rows = rows.with_columns(lost=pl.col("host_ns") / pl.col("span_ns"))
    found = rows.filter(
        (pl.col("lost") >= cfg.idle_share)
        & (pl.col("host_ns") >= _MOST_OF_IDLE * pl.col("idle_ns"))
        & (pl.col("short") >= cfg.short_share)
        & (pl.col("kernels") >= cfg.kernels)
        & (pl.col("gaps") >= cfg.gaps)
    ).sort(["lost", "source"], descending=[True, False])
    if found.height:
        yield _finding(run, found.row(0, named=True), cfg)


def _finding(run: Run, row: dict[str, float], cfg: LaunchBound) -> Finding:
    gaps = idle_gaps(run).filter((pl.col("source") == row["source"]) & (pl.col("cause") == HOST))
    first, *more = longest(gaps)
    return trace_launch_bound.finding(
        f"the device waits for launches {percent(row['lost'])} of the traced time{on_rank(row)}; "
        f"{percent(row['short'])} of its {row['kernels']:,} kernels run below {cfg.short_us:g} µs",
        f"{row['gaps']:,} gaps of {ms(row['host_ns'])} in sum end with a kernel launched only after the gap "
        f"began; the median kernel runs {row['median_ns'] / 1000:.1f} µs",
        proof(
            span_evidence(first, f"launched late, after {ms(first['dur_ns'])} without work: {quoted(first['name'])}"),
            *(span_evidence(r, f"after {ms(r['dur_ns'])} without work") for r in more),
        ),
        onset_at(first),
        confidence="medium" if row["kernels"] >= cfg.many else "low",
        numbers={"lost_share": row["lost"], "short_share": row["short"], "kernels": row["kernels"]},
    )
