"""SLO019 trace-before-onset: the run became slow after its profiler trace was taken, so the trace explains nothing.

What it detects: profiler traces that all end before the step at which the steps became slower.

Why it matters: the table of kernels of a healthy phase looks like an answer, and is none.

How it decides: the rule on a lasting shift of the step time (SLO001) gives the onset; every traced step
(`ProfilerStep#N`) lies before it. The profiler counts the steps of its own schedule; where that began later than the
run, its numbers are lower than the run's.

What else looks like this: a profiler that was started in the middle of the run and counts from 0.

What to do next: take a trace of a few steps within the slow phase, and compare: `forensics kernels BEFORE AFTER`.

References: PyTorch documentation of `torch.profiler.schedule`, on how steps are counted.

Example:
    ```spans step,category,name,start_ns,dur_ns,thread
    12,user_annotation,ProfilerStep#12,0,1000000,1/1
    ```
    ```metrics
    step: 10..220/10
    train_time_s: 3 6.1 9 12.05 15.05 18 21.1 24.1 27.2 30.1 40.15 50.15 60.1 70.2 80.2 90.3 100.2 110.25 120.25 130.2
        140.3 150.3
    ```
    => SLO019 info confidence=medium step=110 step_lo=12 cause=trace_before_onset last_traced_step=12 onset_step=110
Not this: a trace of the slow phase
    ```spans step,category,name,start_ns,dur_ns,thread
    132,user_annotation,ProfilerStep#132,0,1000000,1/1
    ```
    ```metrics
    step: 10..220/10
    train_time_s: 3 6.1 9 12.05 15.05 18 21.1 24.1 27.2 30.1 40.15 50.15 60.1 70.2 80.2 90.3 100.2 110.25 120.25 130.2
        140.3 150.3
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import replace

from forensics.analyses.traces.steps import steps
from forensics.rules.kit import Findings, Onset, Run, proof, rule
from forensics.rules.slowdown._spans import span_evidence
from forensics.rules.slowdown.level_shift import step_time_level_shift


@rule(
    "slowdown",
    needs=("spans", "metrics", "checkpoints", "progress"),
    severity="info",
    confidence="medium",
    cause="trace_before_onset",
)
def trace_before_onset(run: Run) -> Findings:
    """Say so when the traces were taken before the slowdown began."""
    marks = steps(run)
    if marks.is_empty():
        return
    slower = next(iter(step_time_level_shift(run)), None)
    traced = marks.sort("step").row(-1, named=True)
    if slower is None or slower.onset.step is None or traced["step"] >= slower.onset.step:
        return
    onset = slower.onset.step
    mark = {**traced, "name": f"ProfilerStep#{traced['step']}", "dur_ns": traced["end_ns"] - traced["start_ns"]}
    yield trace_before_onset.finding(
        f"the last profiler trace ends at step {traced['step']}, before the steps became slower at step {onset}: "
        "it cannot explain why",
        f"all {marks.height} traced steps precede the onset",
        proof(
            span_evidence(mark, f"the last traced step is {traced['step']}"), *(replace(e) for e in slower.evidence[:1])
        ),
        Onset(step=onset, step_lo=traced["step"]),
        numbers={"last_traced_step": traced["step"], "onset_step": onset},
        next=(f"take a trace of a few steps after step {onset}, then: forensics kernels BEFORE AFTER",),
    )
