"""SLO017 trace-other-kernels-grew: a later trace spends a larger share of device time outside of its large kernels.

What it detects: of two profiler traces of one rank, taken at different steps of a run, the later one spends more on
kernels that are neither matrix products, attention, convolutions, communication nor copies.

Why it matters: fusion that was lost, as when a compiled model falls back to eager execution, multiplies small kernels.

How it decides: the share of such kernels in the summed device time grew by at least `points` and `ratio` times; or
there are at least `count_ratio` times as many of them a step while their median time fell.

What else looks like this: a phase with another optimizer or loss; a trace that holds an evaluation.

What to do next: look at the new names (`forensics kernels FIRST LAST`), and in the log for graph breaks and recompiles.

References: 5 percentage points and 1.3 times, or 1.5 times the count, are the limits used in practice.

Example:
    ```spans source,step,category,name,start_ns,dur_ns
    a.json,10,user_annotation,ProfilerStep#10,0,1000000
    a.json,,kernel,ampere_sgemm_128x64_nn,0,900000
    a.json,,kernel,some_custom_kernel,900000,50000
    b.json,500,user_annotation,ProfilerStep#500,90000000,1500000
    b.json,,kernel,ampere_sgemm_128x64_nn,90000000,900000
    b.json,,kernel,some_custom_kernel,90900000,190000
    ```
    => SLO017 warning confidence=medium step=500 step_lo=10 cause=other_kernels_grew after_share=0.1743
Not this: the same share in both
    ```spans source,step,category,name,start_ns,dur_ns
    a.json,10,user_annotation,ProfilerStep#10,0,1000000
    a.json,,kernel,ampere_sgemm_128x64_nn,0,900000
    a.json,,kernel,some_custom_kernel,900000,50000
    b.json,500,user_annotation,ProfilerStep#500,90000000,1500000
    b.json,,kernel,ampere_sgemm_128x64_nn,90000000,900000
    b.json,,kernel,some_custom_kernel,90900000,52000
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
class OtherKernelsGrew:
    """Thresholds of SLO017: difference and ratio of shares of summed device time, ratio of counts a step."""

    points: float = 0.05
    ratio: float = 1.3
    count_ratio: float = 1.5


@rule(
    "slowdown",
    needs=("spans",),
    config=OtherKernelsGrew,
    severity="warning",
    confidence="medium",
    cause="other_kernels_grew",
)
def trace_other_kernels_grew(run: Run, cfg: OtherKernelsGrew) -> Findings:
    """Compare the first and the last trace of each rank."""
    before, after = pl.col("other_share_first"), pl.col("other_share_last")
    tiny = (pl.col("other_median_ns_last") < pl.col("other_median_ns_first")).fill_null(value=False)
    more = multiplied("other_each", cfg.count_ratio) & tiny & (after > before)
    pair = most_grown(window_pairs(run), "other_share", rose("other_share", cfg.points, cfg.ratio) | more)
    if pair is not None:
        yield grown(trace_other_kernels_grew, run, pair, "other_share")
