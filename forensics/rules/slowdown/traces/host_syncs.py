"""SLO011 trace-host-syncs: the training loop waits for the device in the middle of its steps.

What it detects: `.item()`, `.cpu()`, copies to or from pageable memory, `torch.cuda.synchronize` and the like within
steps, and where in the program they are called.

Why it matters: while the host waits it launches nothing, so the device runs dry and stays idle until the next launch.

How it decides: a warning when the idle time of the device that follows such a call is at least `idle_share` of the time
from the first kernel to the last. Otherwise information when there are at least `calls` a step, or the calls take at
least `wait_share` of the time: a host that waits for a device that is always busy loses nothing. What the profiler does
when its window begins and ends is not counted.

What else looks like this: a loop that logs or clips gradients each step on purpose; the wait of an evaluation.

What to do next: look at the named call sites; log every N steps, keep sums on the device, copy with `non_blocking=True`
from pinned memory.

References: PyTorch, "Performance Tuning Guide", on avoiding synchronization between CPU and GPU; the limits of 5 calls
a step and 5 % are what practitioners call too many.

Example:
    ```spans step,category,name,start_ns,dur_ns,correlation,thread
    7,user_annotation,ProfilerStep#7,0,400000,,1/1
    ,cuda_runtime,cudaLaunchKernel,5000,2000,1,1/1
    ,kernel,gemm_a,10000,90000,1,
    ,cpu_op,aten::item,8000,95000,,1/1
    ,cuda_runtime,cudaStreamSynchronize,9000,93000,2,1/1
    ,cuda_runtime,cudaLaunchKernel,140000,2000,3,1/1
    ,kernel,gemm_a,145000,90000,3,
    ```
    => SLO011 warning confidence=medium step=7 t_ns=9000 cause=host_sync idle_share=0.2000 wait_s=0.00009300
Not this: one wait at the end of the step
    ```spans step,category,name,start_ns,dur_ns,correlation,thread
    7,user_annotation,ProfilerStep#7,0,400000,,1/1
    ,cuda_runtime,cudaLaunchKernel,5000,2000,1,1/1
    ,kernel,gemm_a,10000,90000,1,
    ,cuda_runtime,cudaLaunchKernel,9000,2000,3,1/1
    ,kernel,gemm_a,101000,90000,3,
    ,cuda_runtime,cudaStreamSynchronize,190000,1000,2,1/1
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.gaps import SYNC, idle_causes
from forensics.analyses.traces.steps import steps
from forensics.analyses.traces.syncs import sync_calls
from forensics.rules.kit import Finding, Findings, Run, onset_at, proof, rule
from forensics.rules.slowdown._spans import longest, ms, on_rank, percent, quoted, span_evidence

_SITES = 3


@dataclass(frozen=True, slots=True)
class Syncs:
    """Thresholds of SLO011: share of idle time after such calls, calls a step, share of time in them."""

    idle_share: float = 0.05
    calls: float = 5.0
    wait_share: float = 0.05


@rule("slowdown", needs=("spans",), config=Syncs, confidence="medium", cause="host_sync")
def trace_host_syncs(run: Run, cfg: Syncs) -> Findings:
    """Find the trace whose host waits for the device most."""
    calls = sync_calls(run).filter(pl.col("waits"))
    if calls.is_empty():
        return
    marks = steps(run).group_by("source").agg(steps=pl.len())
    idle = idle_causes(run).filter(pl.col("cause") == SYNC).select("source", idle_ns="time_ns")
    rows = (
        by_rank(run)
        .select("source", "rank", "span_ns")
        .join(calls.group_by("source").agg(calls=pl.len(), wait_ns=pl.col("dur_ns").sum()), on="source")
        .join(marks, on="source", how="left")
        .join(idle, on="source", how="left")
        .with_columns(
            lost=pl.col("idle_ns").fill_null(0) / pl.col("span_ns"),
            waits=pl.col("wait_ns") / pl.col("span_ns"),
            each=pl.col("calls") / pl.col("steps"),
        )
    )
    bad = pl.col("lost") >= cfg.idle_share
    many = (pl.col("each") >= cfg.calls).fill_null(value=False) | (pl.col("waits") >= cfg.wait_share)
    found = rows.filter(bad | many).sort(["lost", "waits", "source"], descending=[True, True, False])
    if found.height:
        row = found.row(0, named=True)
        yield _finding(calls.filter(pl.col("source") == row["source"]), row, serious=row["lost"] >= cfg.idle_share)


def _finding(calls: pl.DataFrame, row: dict[str, Any], *, serious: bool) -> Finding:
    sites = (
        calls.with_columns(site=pl.coalesce("frame", "op", "name"))
        .group_by("site")
        .agg(n=pl.len(), ns=pl.col("dur_ns").sum())
        .sort(["ns", "site"], descending=[True, False])
        .head(_SITES)
    )
    named = "; ".join(f"{quoted(site)} {n} times, {ms(ns)}" for site, n, ns in sites.iter_rows())
    first, *more = longest(calls)
    each = "" if row["each"] is None else f", {row['each']:.1f} a step"
    return trace_host_syncs.finding(
        f"the host waits for the device {row['calls']} times within the trace{each}; the device is idle "
        f"{percent(row['lost'])} of the time after such waits{on_rank(row)}",
        f"the waits take {ms(row['wait_ns'])}; called from {named}",
        proof(span_evidence(first, _quote(first)), *(span_evidence(r, _quote(r)) for r in more)),
        onset_at(first),
        severity="warning" if serious else "info",
        numbers={"idle_share": row["lost"], "calls": row["calls"], "wait_s": row["wait_ns"] / 1e9},
    )


def _quote(row: dict[str, str]) -> str:
    where = [f"in {quoted(row[key])}" for key in ("op", "frame") if row[key]]
    copy = [f"for {quoted(row['copy'])}"] if row["copy"] else []
    return " ".join([f"{row['name']} waited {ms(float(row['dur_ns']))}", *copy, *where])
