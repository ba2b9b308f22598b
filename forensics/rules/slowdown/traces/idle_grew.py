"""SLO037 trace-idle-grew: a later trace leaves the device without work for a larger share of the time.

What it detects: of two profiler traces of one rank, taken at different steps of a run, the later one shows more idle
time between the work of the device.

Why it matters: kernels that take as long as before prove that the device is as fast as it was: the host, the data or
another process came to be slow.

How it decides: the idle share of the traced time grew by at least `points` and `ratio` times, to at least `least`.

What else looks like this: a later trace that holds a saved checkpoint or an evaluation.

What to do next: look at what ends the longest gaps (`forensics kernels FIRST LAST`, or the trace in ui.perfetto.dev).

References: 5 percentage points, and an idle share of 15 %, are the limits used in practice.

Example:
    ```spans source,step,category,name,start_ns,dur_ns
    a.json,10,user_annotation,ProfilerStep#10,0,1000000
    a.json,,kernel,gemm_a,0,500000
    a.json,,kernel,gemm_a,550000,450000
    b.json,500,user_annotation,ProfilerStep#500,90000000,1500000
    b.json,,kernel,gemm_a,90000000,500000
    b.json,,kernel,gemm_a,91000000,500000
    ```
    => SLO037 warning confidence=medium step=500 step_lo=10 cause=idle_grew after_share=0.3333
Not this: gaps that were as long before
    ```spans source,step,category,name,start_ns,dur_ns
    a.json,10,user_annotation,ProfilerStep#10,0,1000000
    a.json,,kernel,gemm_a,0,500000
    a.json,,kernel,gemm_a,550000,450000
    b.json,500,user_annotation,ProfilerStep#500,90000000,1000000
    b.json,,kernel,gemm_a,90000000,500000
    b.json,,kernel,gemm_a,90560000,440000
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.traces.gaps import idle_causes, idle_gaps
from forensics.analyses.traces.windows import window_pairs
from forensics.rules.kit import Findings, Onset, Run, proof, rule
from forensics.rules.slowdown._spans import longest, ms, percent, quoted, span_evidence
from forensics.rules.slowdown.traces._growth import most_grown, rose


@dataclass(frozen=True, slots=True)
class IdleGrew:
    """Thresholds of SLO037: difference, ratio and least size of the idle share of the traced time."""

    points: float = 0.05
    ratio: float = 1.3
    least: float = 0.15


@rule("slowdown", needs=("spans",), config=IdleGrew, severity="warning", confidence="medium", cause="idle_grew")
def trace_idle_grew(run: Run, cfg: IdleGrew) -> Findings:
    """Compare the first and the last trace of each rank."""
    bad = rose("idle_share", cfg.points, cfg.ratio) & (pl.col("idle_share_last") >= cfg.least)
    pair = most_grown(window_pairs(run), "idle_share", bad)
    if pair is None:
        return
    of_last = pl.col("source") == pair["source_last"]
    causes = idle_causes(run).filter(of_last)["cause"]
    yield trace_idle_grew.finding(
        f"the device's idle time grew from {percent(pair['idle_share_first'])} to {percent(pair['idle_share_last'])}"
        f" between two traces by step {pair['step_lo_last']}",
        f"of {pair['source_first']} and {pair['source_last']}; most of it by {causes[0]}",
        proof(
            *(
                span_evidence(gap, f"{ms(gap['dur_ns'])} without work before {quoted(gap['name'])}")
                for gap in longest(idle_gaps(run).filter(of_last), 2)
            )
        ),
        Onset(step=pair["step_lo_last"], rank=pair["rank"], step_lo=pair["step_hi_first"]),
        numbers={"before_share": pair["idle_share_first"], "after_share": pair["idle_share_last"]},
    )
