"""SLO018 trace-recompiles: the traced steps contain compilation, again and again.

What it detects: work of `torch.compile` (TorchDynamo, Inductor) inside several steps of a profiler trace.

Why it matters: compiling takes seconds and the device waits; a shape that changes every few steps can make a compiled
model slower than an eager one.

How it decides: rows that the compiler marks while it compiles lie in at least `steps` different steps and take at least
`share` of the steps' time.

What else looks like this: a trace of the first steps, in which each part of the model is compiled once.

What to do next: run with `TORCH_LOGS=recompiles` to see the guard that fails; pad shapes or mark them dynamic.

References: PyTorch documentation, "Troubleshooting torch.compile", on recompilation; 5 % is the share from which
waiting of the host counts in the other rules on traces.

Example:
    ```spans step,category,name,start_ns,dur_ns,thread
    40,user_annotation,ProfilerStep#40,0,1000000,1/1
    ,cpu_op,_compile.compile_inner (dynamo_timed),100000,400000,1/1
    41,user_annotation,ProfilerStep#41,1000000,1000000,1/1
    ,cpu_op,_compile.compile_inner (dynamo_timed),1100000,400000,1/1
    ```
    => SLO018 warning confidence=medium step=40 t_ns=100000 cause=recompiles share=0.4000 compile_s=0.0008000
Not this: compiled once
    ```spans step,category,name,start_ns,dur_ns,thread
    40,user_annotation,ProfilerStep#40,0,1000000,1/1
    ,cpu_op,_compile.compile_inner (dynamo_timed),100000,400000,1/1
    41,user_annotation,ProfilerStep#41,1000000,1000000,1/1
    ,cpu_op,Torch-Compiled Region: 0/0,1100000,400000,1/1
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.traces.compiles import compile_rows, compile_share
from forensics.rules.kit import Findings, Run, onset_at, proof, rule
from forensics.rules.slowdown._spans import longest, ms, on_rank, percent, quoted, span_evidence


@dataclass(frozen=True, slots=True)
class Recompiles:
    """Thresholds of SLO018: number of steps with compilation, and its share of the steps' time."""

    steps: int = 2
    share: float = 0.05


@rule("slowdown", needs=("spans",), config=Recompiles, severity="warning", confidence="medium", cause="recompiles")
def trace_recompiles(run: Run, cfg: Recompiles) -> Findings:
    """Find the trace that compiles most."""
    found = compile_share(run).filter(pl.col("steps") >= cfg.steps, pl.col("share") >= cfg.share)
    if found.is_empty():
        return
    row = found.sort(["share", "source"], descending=[True, False]).row(0, named=True)
    rows = compile_rows(run).filter((pl.col("source") == row["source"]) & pl.col("step").is_not_null())
    first = rows.sort("start_ns").row(0, named=True)
    yield trace_recompiles.finding(
        f"{row['steps']} traced steps compile, which takes {percent(row['share'])} of the steps' time{on_rank(row)}",
        f"{row['count']} rows of the compiler, {ms(row['time_ns'])} in {row['steps']} different steps",
        proof(
            span_evidence(first, f"{quoted(first['name'])} ran {ms(first['dur_ns'])}"),
            *(span_evidence(r, f"{quoted(r['name'])} ran {ms(r['dur_ns'])}") for r in longest(rows, 2)),
        ),
        onset_at(first),
        numbers={"share": row["share"], "steps": row["steps"], "compile_s": row["time_ns"] / 1e9},
    )
