"""SLO034 idle-device: a device has no work for a large part of the traced time, and no rule of one cause explains it.

What it detects: gaps in which no stream of the device has work, of whatever cause.

Why it matters: an idle device costs what a busy one does. A quarter of idle time makes a run a third longer.

How it decides: idle time over traced time is `much` or more, a note from `some` on. It is silent where waiting for
data, for synchronisation, for launches or for communication is proven: those rules say more.

What else looks like this: a trace that spans an evaluation or a save; the profiler's own cost, with stacks on.

What to do next: open the trace at the longest gaps.

References: Holistic Trace Analysis, "Idle Time Breakdown".

Example:
    ```spans step,category,name,start_ns,dur_ns,thread
    103,user_annotation,ProfilerStep#103,0,1000000,1/1
    ,kernel,gemm,0,300000,
    ,kernel,gemm,600000,400000,
    ```
    => SLO034 warning confidence=medium step=103 t_ns=300000 cause=idle_device idle_share=0.3000
Not this: a device that works without a gap
    ```spans step,category,name,start_ns,dur_ns,thread
    103,user_annotation,ProfilerStep#103,0,1000000,1/1
    ,kernel,gemm,0,600000,
    ,kernel,gemm,600000,400000,
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.gaps import idle_causes, idle_gaps
from forensics.analyses.traces.steps import step_at, steps
from forensics.rules.kit import Findings, Onset, Run, proof, rule
from forensics.rules.slowdown._spans import longest, ms, on_rank, percent, quoted, span_evidence
from forensics.rules.slowdown.traces.data_starvation import trace_data_starvation
from forensics.rules.slowdown.traces.exposed_communication import trace_exposed_communication
from forensics.rules.slowdown.traces.host_syncs import trace_host_syncs
from forensics.rules.slowdown.traces.launch_bound import trace_launch_bound

_OF_ONE_CAUSE: tuple[Callable[[Run], Findings], ...] = (
    trace_data_starvation,
    trace_host_syncs,
    trace_launch_bound,
    trace_exposed_communication,
)


@dataclass(frozen=True, slots=True)
class IdleDevice:
    """Thresholds of SLO034: shares of the traced time."""

    some: float = 0.15
    much: float = 0.25


@rule("slowdown", needs=("spans",), config=IdleDevice, confidence="medium", cause="idle_device")
def idle_device(run: Run, cfg: IdleDevice) -> Findings:
    """Find the trace with most idle time."""
    shares = by_rank(run).filter(pl.col("span_ns") > 0).with_columns(share=pl.col("idle_ns") / pl.col("span_ns"))
    worst = shares.filter(pl.col("share") >= cfg.some).sort(["share", "source"], descending=[True, False])
    if worst.is_empty() or any(True for named in _OF_ONE_CAUSE for _ in named(run)):
        return
    row = worst.row(0, named=True)
    gaps = idle_gaps(run).filter(pl.col("source") == row["source"])
    causes = idle_causes(run).filter(pl.col("source") == row["source"])
    first, *more = longest(gaps)
    at = step_at(steps(run), pl.Series([first["source"]]), pl.Series([first["start_ns"]], dtype=pl.Int64))[0]
    yield idle_device.finding(
        f"the device is idle for {percent(row['share'])} of the traced time{on_rank(row)}",
        f"{gaps.height:,} gaps, the longest {ms(first['dur_ns'])}; most of it by {causes['cause'][0]}",
        proof(
            span_evidence(first, f"{ms(first['dur_ns'])} without work before {quoted(first['name'])}"),
            *(span_evidence(r, f"{ms(r['dur_ns'])} without work") for r in more),
        ),
        Onset(step=at, t_ns=first["start_ns"], rank=first["rank"]),
        severity="warning" if row["share"] >= cfg.much else "info",
        numbers={"idle_share": row["share"], "gaps": gaps.height},
    )
