"""SLO035 traced-warmup: all profiled steps are among the first, so the trace does not show the run at its pace.

What it detects: traces, or a setting of the profiler, whose last step is below `steady`.

Why it matters: the first steps compile, choose kernels and reserve memory. Their shares are not those of the run, and a
comparison with them finds changes that are none.

How it decides: by the last `ProfilerStep` of all traces, else by the steps that the configuration names.

What else looks like this: a run that has no later steps; a profiler that counts from its own start.

What to do next: profile about eight steps after the twentieth, or from step 100 on.

References: PyTorch, torch.profiler, "schedule", on its wait and warm-up.

Example:
    ```spans step,category,name,start_ns,dur_ns,thread
    0,user_annotation,ProfilerStep#0,0,1000000,1/1
    1,user_annotation,ProfilerStep#1,1000000,1000000,1/1
    ```
    => SLO035 info confidence=medium step=1 cause=trace_of_warmup causal=context last_step=1
Not this: steady steps
    ```spans step,category,name,start_ns,dur_ns,thread
    100,user_annotation,ProfilerStep#100,0,1000000,1/1
    101,user_annotation,ProfilerStep#101,1000000,1000000,1/1
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.traces.steps import steps
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import Evidence, Findings, Onset, Run, fact_evidence, proof, rule
from forensics.rules.slowdown._spans import span_evidence


@dataclass(frozen=True, slots=True)
class Warmup:
    """Threshold of SLO035: the first step that may be steady."""

    steady: int = 10


@rule(
    "slowdown",
    needs=("spans", "facts"),
    config=Warmup,
    severity="info",
    confidence="medium",
    cause="trace_of_warmup",
    causal="context",
)
def traced_warmup(run: Run, cfg: Warmup) -> Findings:
    """Say so when nothing but the first steps was profiled."""
    last = _traced(run) or _planned(run)
    if last is None or last[0] >= cfg.steady:
        return
    step, evidence = last
    yield traced_warmup.finding(
        f"the last profiled step is {step}: the profile is of the warm-up, and its shares are not those of the run",
        f"steps below {cfg.steady} compile, choose kernels and reserve memory",
        proof(evidence),
        Onset(step=step),
        numbers={"last_step": step},
    )


def _traced(run: Run) -> tuple[int, Evidence] | None:
    marks = steps(run)
    if marks.is_empty():
        return None
    row = marks.sort("step").row(-1, named=True)
    mark = {**row, "name": f"ProfilerStep#{row['step']}", "dur_ns": row["end_ns"] - row["start_ns"]}
    return int(row["step"]), span_evidence(mark, f"the last traced step is {row['step']}")


def _planned(run: Run) -> tuple[int, Evidence] | None:
    facts, key, value = run.scan("facts"), pl.col("key"), pl.col("value")
    off = facts.filter(key.str.contains(words_for("profiler_switch")) & value.str.contains(words_for("switched_off")))
    found = facts.filter(key.str.contains(words_for("profiled_steps"))).join(off, on="source", how="anti")
    told = found.with_columns(step=pl.col("value").str.extract_all(r"\d+").list.last().cast(pl.Int64, strict=False))
    rows = told.filter(pl.col("step").is_not_null()).sort("step").collect()
    if rows.is_empty():
        return None
    row = rows.row(-1, named=True)
    return int(row["step"]), fact_evidence(row)
