"""SLO015 trace-communication-grew: a later trace spends a larger share of its time in exposed communication.

What it detects: of two profiler traces of one rank, taken at different steps of a run, the later one waits for
collectives much more.

Why it matters: a network that degrades, or a neighbour rank that slows down, shows in no loss curve.

How it decides: for each rank with several traces, the share of the traced time that is communication with nothing
computed meanwhile: last trace less first at least `points`, and at least `ratio` times.

What else looks like this: a first trace of the warm-up; a changed parallel layout after a restart.

What to do next: compare the ranks of the later trace, as a slow rank makes all others wait; look at link error counters
of the nodes.

References: 5 percentage points and 1.3 times are the limits used in practice for a share that climbs.

Example:
    ```spans source,step,category,name,start_ns,dur_ns
    a.json,10,user_annotation,ProfilerStep#10,0,1000000
    a.json,,kernel,gemm_a,0,900000
    a.json,,kernel,ncclDevKernel_AllReduce_Sum,850000,100000
    b.json,500,user_annotation,ProfilerStep#500,90000000,1500000
    b.json,,kernel,gemm_a,90000000,900000
    b.json,,kernel,ncclDevKernel_AllReduce_Sum,90850000,500000
    ```
    => SLO015 warning confidence=medium step=500 step_lo=10 cause=communication_grew after_share=0.3333
Not this: the same share in both
    ```spans source,step,category,name,start_ns,dur_ns
    a.json,10,user_annotation,ProfilerStep#10,0,1000000
    a.json,,kernel,gemm_a,0,900000
    a.json,,kernel,ncclDevKernel_AllReduce_Sum,850000,400000
    b.json,500,user_annotation,ProfilerStep#500,90000000,1500000
    b.json,,kernel,gemm_a,90000000,900000
    b.json,,kernel,ncclDevKernel_AllReduce_Sum,90850000,410000
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.traces.windows import window_pairs
from forensics.rules.kit import Findings, Run, rule
from forensics.rules.slowdown.traces._growth import grown, most_grown, rose


@dataclass(frozen=True, slots=True)
class CommunicationGrew:
    """Thresholds of SLO015: difference and ratio of shares of the traced time."""

    points: float = 0.05
    ratio: float = 1.3


@rule(
    "slowdown",
    needs=("spans",),
    config=CommunicationGrew,
    severity="warning",
    confidence="medium",
    cause="communication_grew",
)
def trace_communication_grew(run: Run, cfg: CommunicationGrew) -> Findings:
    """Compare the first and the last trace of each rank."""
    pair = most_grown(window_pairs(run), "comm_share", rose("comm_share", cfg.points, cfg.ratio))
    if pair is not None:
        yield grown(trace_communication_grew, run, pair, "comm_share")
