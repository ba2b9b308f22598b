"""SLO010 trace-data-starvation: a profiler trace shows the devices idle while the loop waits for its data loader.

What it detects: steps in which the training loop stands in `enumerate(DataLoader)` while no kernel runs.

Why it matters: the devices are paid for and wait. The loss is right and no error is printed, and tables of kernels show
only the time in which something ran.

How it decides: idle time of the device is charged to the data loader when the thread that launched the next kernel
spent at least half of the gap in the loader. A warning when that is at least `idle_share` of the time from the first
kernel to the last. A trace without device work: when at least `step_share` of the steps passed in the loader. Batches
made by the training process itself (`_SingleProcessDataLoaderIter`, which is `num_workers=0`) are named as the cause.

What else looks like this: the first step of an epoch, in which workers are started; a trace of evaluation.

What to do next: set `num_workers` to at least one per few cores, `pin_memory=True`, `persistent_workers=True`, move
decoding out of the loop, and take another trace.

References: PyTorch, "Performance Tuning Guide", on asynchronous data loading; the retired PyTorch profiler plugin of
TensorBoard warned from 5 % of the step on. The threshold of 10 % asks for a clear case.

Example:
    ```spans step,category,name,start_ns,dur_ns,correlation,thread
    5,user_annotation,ProfilerStep#5,1000,900000,,1/1
    ,user_annotation,enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__,110000,500000,,1/1
    ,cuda_runtime,cudaLaunchKernel,5000,2000,1,1/1
    ,kernel,gemm_a,10000,90000,1,
    ,cuda_runtime,cudaLaunchKernel,620000,2000,2,1/1
    ,kernel,gemm_a,625000,90000,2,
    ```
    => SLO010 warning confidence=medium step=5 t_ns=110000 cause=dataloader lost_share=0.7447 wait_s=0.0005000
Not this: the loader is called while the device works
    ```spans step,category,name,start_ns,dur_ns,correlation,thread
    5,user_annotation,ProfilerStep#5,1000,900000,,1/1
    ,cuda_runtime,cudaLaunchKernel,5000,2000,1,1/1
    ,user_annotation,enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__,8000,500000,,1/1
    ,kernel,gemm_a,10000,600000,1,
    ,cuda_runtime,cudaLaunchKernel,520000,2000,2,1/1
    ,kernel,gemm_a,611000,90000,2,
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.gaps import LOADER, idle_causes, idle_gaps
from forensics.analyses.traces.loader import loader_rows, loader_share
from forensics.analyses.traces.steps import step_at, steps
from forensics.rules.kit import Finding, Findings, Run, onset_at, proof, rule
from forensics.rules.slowdown._spans import longest, ms, on_rank, percent, quoted, span_evidence


@dataclass(frozen=True, slots=True)
class Starvation:
    """Thresholds of SLO010: shares of the device's time and, without a device, of the steps; fewest calls."""

    idle_share: float = 0.10
    step_share: float = 0.10
    calls: int = 1


@rule("slowdown", needs=("spans",), config=Starvation, severity="warning", cause="dataloader")
def trace_data_starvation(run: Run, cfg: Starvation) -> Findings:
    """Find the trace in which the loader keeps the device idle most."""
    shares = loader_share(run)
    if shares.is_empty():
        return
    idle = idle_causes(run).filter(pl.col("cause") == LOADER).select("source", idle_ns="time_ns")
    spans = by_rank(run).select("source", "span_ns")
    rows = shares.join(idle, on="source", how="left").join(spans, on="source", how="left")
    exposed = pl.col("idle_ns").fill_null(0) / pl.col("span_ns")
    judged = rows.with_columns(
        lost=pl.when(pl.col("span_ns").is_not_null()).then(exposed).otherwise(pl.col("share")),
        limit=pl.when(pl.col("span_ns").is_not_null()).then(cfg.idle_share).otherwise(cfg.step_share),
    )
    found = judged.filter(pl.col("calls") >= cfg.calls, pl.col("lost") >= pl.col("limit"))
    if found.height:
        row = found.sort(["lost", "source"], descending=[True, False]).row(0, named=True)
        yield _finding(run, row, judged.height, found.height)


def _finding(run: Run, row: dict[str, object], traces: int, hit: int) -> Finding:
    source = row["source"]
    calls = loader_rows(run).filter(pl.col("source") == source)
    calls = calls.with_columns(step_at(steps(run), calls["source"], calls["start_ns"]), dur_ns=_DUR)
    gaps = idle_gaps(run).filter((pl.col("source") == source) & (pl.col("cause") == LOADER))
    lost, share, own = float(str(row["lost"])), row["share"], bool(row["in_process"])
    first, *more = longest(calls)
    what = "the devices are idle" if row["span_ns"] is not None else "steps pass"
    how = " (num_workers=0: batches are made in the training process)" if own else ""
    return trace_data_starvation.finding(
        f"{what} {percent(lost)} of the traced time while the loop waits for its data loader{on_rank(row)}{how}",
        f"{row['calls']} calls of the loader took {ms(float(str(row['wait_ns'])))}"
        + ("" if share is None else f", {percent(float(str(share)))} of the steps")
        + (f"; seen in {hit} of {traces} traces" if traces > 1 else ""),
        proof(
            span_evidence(first, f"{quoted(first['name'])} took {ms(first['dur_ns'])}"),
            *(span_evidence(r, f"took {ms(r['dur_ns'])}") for r in more),
            *(span_evidence(g, f"ends a gap of {ms(g['dur_ns'])}: {quoted(g['name'])}") for g in longest(gaps, 2)),
        ),
        onset_at(first),
        confidence="high" if gaps.height > 1 else "medium",
        numbers={"lost_share": lost, "wait_s": float(str(row["wait_ns"])) / 1e9},
    )


_DUR = pl.col("end_ns") - pl.col("start_ns")
