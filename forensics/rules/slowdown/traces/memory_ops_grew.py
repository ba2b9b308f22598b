"""SLO016 trace-memory-ops-grew: a later trace spends a larger share of device time on copies and sets of memory.

What it detects: of two profiler traces of one rank, taken at different steps of a run, the later one copies much more.

Why it matters: a misplaced `.cpu()` or a conversion to numpy stalls the loop and shows nowhere else.

How it decides: the share of copies and sets in the summed device time grew by at least `points` and `ratio` times; or
there are at least `count_ratio` times as many of them a step, and their share grew too.

What else looks like this: a trace that holds a checkpoint or an evaluation.

What to do next: look at the direction of the copies (`forensics kernels FIRST LAST`), and search what changed for
`.cpu()`, `.numpy()` and `.item()`.

References: 3 percentage points and 1.5 times, or twice the count, are the limits used in practice.

Example:
    ```spans source,step,category,name,start_ns,dur_ns
    a.json,10,user_annotation,ProfilerStep#10,0,1000000
    a.json,,kernel,gemm_a,0,900000
    a.json,,gpu_memcpy,Memcpy DtoH (Device -> Pageable),900000,10000
    b.json,500,user_annotation,ProfilerStep#500,90000000,1500000
    b.json,,kernel,gemm_a,90000000,900000
    b.json,,gpu_memcpy,Memcpy DtoH (Device -> Pageable),90900000,90000
    ```
    => SLO016 warning confidence=medium step=500 step_lo=10 cause=memory_ops_grew after_share=0.09091
Not this: the same share in both
    ```spans source,step,category,name,start_ns,dur_ns
    a.json,10,user_annotation,ProfilerStep#10,0,1000000
    a.json,,kernel,gemm_a,0,900000
    a.json,,gpu_memcpy,Memcpy DtoH (Device -> Pageable),900000,10000
    b.json,500,user_annotation,ProfilerStep#500,90000000,1500000
    b.json,,kernel,gemm_a,90000000,900000
    b.json,,gpu_memcpy,Memcpy DtoH (Device -> Pageable),90900000,11000
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.traces.windows import window_pairs
from forensics.rules.kit import Findings, Run, rule
from forensics.rules.slowdown.traces._growth import grown, most_grown, multiplied, rose


@dataclass(frozen=True, slots=True)
class MemoryOpsGrew:
    """Thresholds of SLO016: difference and ratio of shares of summed device time, ratio of counts a step.

    `least` is the share below which a count does not matter.
    """

    points: float = 0.03
    ratio: float = 1.5
    count_ratio: float = 2.0
    least: float = 0.01


@rule(
    "slowdown", needs=("spans",), config=MemoryOpsGrew, severity="warning", confidence="medium", cause="memory_ops_grew"
)
def trace_memory_ops_grew(run: Run, cfg: MemoryOpsGrew) -> Findings:
    """Compare the first and the last trace of each rank."""
    before, after = pl.col("memory_share_first"), pl.col("memory_share_last")
    more = multiplied("memory_each", cfg.count_ratio) & (after > before) & (after >= cfg.least)
    pair = most_grown(window_pairs(run), "memory_share", rose("memory_share", cfg.points, cfg.ratio) | more)
    if pair is not None:
        yield grown(trace_memory_ops_grew, run, pair, "memory_share")
